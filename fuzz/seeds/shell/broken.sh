p 'unterminated
