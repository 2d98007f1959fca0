"""What akin refuses, with what to do about it."""


class Error(ValueError):
    """What akin refuses: what is wrong and why, and what to do.

    Attributes
    ----------
    message : str
        What is wrong and why.
    hint : str
        What you can do about it.
    """

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message, hint)
        self.message = message
        self.hint = hint

    def __str__(self) -> str:
        return f"{self.message}; {self.hint}" if self.hint else self.message


class TaxonomyError(Error):
    """The labels form no tree, or do not fit the embeddings."""


class ConfigError(Error):
    """A setting is out of its range, or does not fit the others."""


class EmbeddingsError(Error):
    """Embeddings have the wrong shape or type, or numbers that are not finite."""


_BY_CODE = {"taxonomy": TaxonomyError, "config": ConfigError, "embeddings": EmbeddingsError}


def exception(code: str, message: str, hint: str) -> Error:
    """The exception of an error in Rust, which calls this."""
    return _BY_CODE.get(code, Error)(message, hint)
