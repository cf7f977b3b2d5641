"""The server that runs the commands of pages."""

from page_address import address

__all__ = ["address"]
