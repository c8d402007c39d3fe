"""Other packages: what they give us, and what we give them. Import the module of the package that you use."""

__all__: list[str] = []
