"""The screen of `fleet top`. Only `drawing` and `desk` are free of Textual."""
