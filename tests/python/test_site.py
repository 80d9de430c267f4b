"""The documentation's website: it builds without warnings, needs no network, and every page is near the home page."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from playwright.sync_api import Browser
from website.hooks import rewrite

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
MAX_CLICKS = 2


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of the site; mkdocs fails if the target of a link or an anchor is missing."""
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "mkdocs", "build", "--site-dir", folder]
    environment = os.environ | {"NO_MKDOCS_2_WARNING": "1"}
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, env=environment)
    assert done.returncode == 0, done.stderr
    return folder


def test_every_document_is_a_page(site: Path) -> None:
    documents = {path.relative_to(DOCS).with_suffix(".html") for path in DOCS.glob("**/*.md")}
    pages = {Path(str(page).replace("README.html", "index.html")) for page in documents}
    assert pages <= {path.relative_to(site) for path in site.glob("**/*.html")}


def test_no_page_loads_anything_from_the_network(site: Path) -> None:
    tags = re.compile(r"<(?:script|img|iframe|link)\b[^>]*>")
    outside = re.compile(r"(?:src|href)=\"(?:https?:)?//")
    pages = list(site.glob("**/*.html"))
    assert len(pages) > 100
    assert {tag for page in pages for tag in tags.findall(page.read_text()) if outside.search(tag)} == set()


def test_search_works_without_a_server(site: Path, browser: Browser) -> None:
    page = browser.new_page()
    requests: list[str] = []
    page.on("request", lambda request: requests.append(request.url))
    page.goto((site / "index.html").as_uri())
    page.get_by_role("textbox", name="Search").fill("bufferbloat")
    result = page.locator(".md-search-result__link").first
    result.wait_for(timeout=120_000)  # building the index takes long on a busy machine
    assert "studies/bufferbloat.html" in (result.get_attribute("href") or "")
    assert [url for url in requests if not url.startswith(("file:", "data:", "blob:"))] == []


def test_a_linked_file_of_the_repository_is_on_the_site(site: Path) -> None:
    scenario = site / "files" / "studies" / "l4s-first-look" / "dualq.toml.txt"
    assert scenario.read_bytes() == (ROOT / "studies" / "l4s-first-look" / "dualq.toml").read_bytes()


def links(page: Path) -> set[Path]:
    """Return the Markdown files that a Markdown file links to."""
    targets = re.findall(r"\]\((?!https?://|#)([^)\s#]+\.md)", page.read_text())
    return {(page.parent / link).resolve() for link in targets}


def reachable(home: Path, clicks: int) -> set[Path]:
    """Return the pages that are reachable from the home page with at most a number of clicks."""
    pages = {home}
    for _ in range(clicks):
        pages |= {target for page in pages for target in links(page) if target.exists()}
    return pages


def test_every_page_is_at_most_two_clicks_from_home() -> None:
    far = set(DOCS.glob("**/*.md")) - reachable(DOCS / "index.md", MAX_CLICKS)
    assert sorted(str(page.relative_to(DOCS)) for page in far) == []


def test_some_pages_need_two_clicks() -> None:
    assert set(DOCS.glob("**/*.md")) - reachable(DOCS / "index.md", 1)


@pytest.mark.parametrize(
    ("uri", "link", "expected"),
    [
        ("guide/a.md", "[b](b.md#part)", "[b](b.md#part)"),
        ("guide/a.md", "[b](../../CONTRIBUTING.md)", "[b](../CONTRIBUTING.md)"),
        ("guide/a.md", "[b](../../pyproject.toml)", "[b](../files/pyproject.toml.txt)"),
        ("guide/a.md", "[b](../../crates)", "b"),
        ("CONTRIBUTING.md", "[b](docs/decisions)", "[b](decisions/README.md)"),
        ("CONTRIBUTING.md", "[b](docs/guide/a.md)", "[b](guide/a.md)"),
        ("guide/a.md", "[b](https://example.org/x.md)", "[b](https://example.org/x.md)"),
        ("guide/a.md", "![b](../images/report.png)", "![b](../images/report.png)"),
    ],
)
def test_links_point_to_existing_pages_of_the_site(uri: str, link: str, expected: str) -> None:
    assert rewrite(f"See {link}.", uri) == f"See {expected}."
