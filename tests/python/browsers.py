"""A browser for tests of pages, in which network requests and console messages are recorded."""

from pathlib import Path

from playwright.sync_api import Browser, Page

ARGUMENTS = [
    "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync",
]  # fmt: skip


WITHIN_MS = 120_000
"""Timeout of an action on a page."""


class Watched:
    """A page with its recorded requests and console messages."""

    def __init__(self, browser: Browser, file: Path, width: int = 1280, **options: object) -> None:
        self.page: Page = browser.new_page(viewport={"width": width, "height": 900}, **options)  # type: ignore[arg-type]
        # A busy machine draws a large page slowly.
        self.page.set_default_timeout(WITHIN_MS)
        self.complaints: list[str] = []
        self.requests: list[str] = []
        self.page.on("console", lambda message: self.complaints.append(f"{message.type}: {message.text}"))
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))
        self.page.on("request", lambda request: self.requests.append(request.url))
        self.file = file.resolve().as_uri()
        self.page.goto(self.file)

    def drawn(self) -> "Watched":
        """Wait until everything in the initial view is drawn."""
        self.page.wait_for_selector("html[data-drawn]", state="attached")
        return self

    def ready(self) -> "Watched":
        """Wait until the page draws figures that are scrolled into view."""
        self.page.wait_for_selector("html[data-figures]", state="attached")
        return self

    def overflow(self) -> int:
        """Return the number of pixels by which the page is wider than its window."""
        return int(self.page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth"))
