//! The language model as a service: one message form, several providers, a scripted one.
