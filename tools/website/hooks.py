"""Hooks of mkdocs: navigation from the index pages, READMEs of studies, and links to files outside of docs/.

The Markdown stays readable in the repository: a link such as `../../studies/NAME/loss.toml` is relative to the
repository. The site gets a copy of each linked file under `files/`, and the documents of the root folder as pages.
"""

import posixpath
import re
from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
SECTIONS = ("guide", "concepts", "reference", "studies", "decisions")
"""Folders of docs/ in the order of the navigation. The links of a folder's README.md order its pages."""
ROOT_PAGES = ("CONTRIBUTING.md", "ARCHITECTURE.md", "SECURITY.md", "CHANGELOG.md")
FILES = "files"
"""Folder of the site with copies of files of the repository."""
WORKER = "assets/file_worker.js"
"""Replacement of a script that the theme would load from the network."""
NETWORK_WORKER = "https://unpkg.com/iframe-worker/shim"

STORY = re.compile(r"^\[Background, method and findings\]\(\.\./\.\./studies/([a-z0-9-]+)/README\.md\)$", re.MULTILINE)
"""The link on a study's page that is replaced with the study's README."""

LINK = re.compile(r"(!?)\[((?:[^\[\]]|\[[^\]]*\])*)\]\((?!https?://|mailto:|#)([^)\s#]+)(#[^)\s]*)?\)")


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Write the navigation: the home page, a section per folder, and the documents of the root folder."""
    navigation: list[object] = [{"Home": "index.md"}]
    for section in SECTIONS:
        title = (DOCS / section / "README.md").read_text().partition("\n")[0].removeprefix("# ")
        navigation.append({title: [f"{section}/README.md", *_linked_pages(section)]})
    navigation.append({"Contributing": list(ROOT_PAGES)})
    config.nav = navigation
    return config


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the documents of the root folder as pages, and copies of all files that documents link to."""
    for name in ROOT_PAGES:
        files.append(File.generated(config, name, content=(ROOT / name).read_text()))
    pages = [DOCS / file.src_uri for file in files.documentation_pages() if file.src_uri not in ROOT_PAGES]
    script = (Path(__file__).parent / "file_worker.js").read_text()
    files.append(File.generated(config, WORKER, content=script))
    linked = {target for page in [*pages, *(ROOT / name for name in ROOT_PAGES)] for target in _outside(page)}
    for target in sorted(linked):
        if (ROOT / target).is_file():
            files.append(File.generated(config, f"{FILES}/{target}.txt", content=(ROOT / target).read_bytes()))
    return files


def on_post_page(output: str, page: Page, config: MkDocsConfig) -> str:
    """Load the script for search without a server from the site itself."""
    del config
    return output.replace(NETWORK_WORKER, posixpath.relpath(WORKER, posixpath.dirname(page.url) or "."))


def on_post_template(output_content: str, template_name: str, config: MkDocsConfig) -> str:
    """Load the script for search without a server from the site itself, also on the page for unknown addresses."""
    del config
    return output_content.replace(NETWORK_WORKER, WORKER) if template_name.endswith(".html") else output_content


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Insert READMEs of studies, and rewrite links to the paths of their targets on the site.

    A link to a folder that the site lacks is replaced with its text.
    """
    del config, files
    return rewrite(with_story(markdown), page.file.src_uri)


def with_story(markdown: str, root: Path = ROOT) -> str:
    """Return a study's page with the text of its README instead of the link to it.

    Args:
        markdown: The page in docs/studies; other pages have no such link and are returned unchanged.
        root: Folder of the repository.
    """

    def text(match: re.Match[str]) -> str:
        name = match[1]
        body = (root / "studies" / name / "README.md").read_text().partition("\n")[2].strip()
        body = re.sub(r"\]\((?!\.\./|#|https?:)", f"](../../studies/{name}/", body)
        body = body.replace(f"](../../docs/studies/{name}.md)", "](#claims)").replace("](../../docs/studies/", "](")
        return re.sub(r"\]\(\.\./([a-z0-9-]+)/README\.md\)", r"](\1.md)", body.replace("](../../docs/", "](../"))

    return STORY.sub(text, markdown)


def rewrite(markdown: str, uri: str) -> str:
    """Return a page's Markdown with its relative links changed to paths on the site.

    Args:
        markdown: The text of the page.
        uri: Path of the page below docs/, or its name if it is a document of the root folder.
    """
    directory = posixpath.dirname(uri)

    def replace(match: re.Match[str]) -> str:
        target = _target(uri, match[3])
        if target in ROOT_PAGES:
            url = target
        elif target.startswith("docs/"):
            index = "/README.md" if (ROOT / target).is_dir() else ""
            url = target.removeprefix("docs/") + index
        elif (ROOT / target).is_file():
            url = f"{FILES}/{target}.txt"
        else:
            return match[2]
        return f"{match[1]}[{match[2]}]({posixpath.relpath(url, directory or '.')}{match[4] or ''})"

    return LINK.sub(replace, markdown)


def _target(uri: str, link: str) -> str:
    """Return the target of a page's link as a path from the root of the repository."""
    folder = "" if uri in ROOT_PAGES else posixpath.join("docs", posixpath.dirname(uri))
    return posixpath.normpath(posixpath.join(folder, link))


def _outside(page: Path) -> set[str]:
    """Return the targets of a document's links outside of docs/, as paths from the root of the repository."""
    uri = page.name if page.parent == ROOT else page.relative_to(DOCS).as_posix()
    targets = {_target(uri, match[3]) for match in LINK.finditer(with_story(page.read_text()))}
    return {target for target in targets if not target.startswith("docs/") and target not in ROOT_PAGES}


def _linked_pages(section: str) -> list[str]:
    """Return the pages of a section in the order of its index page; unlisted pages come last."""
    index = (DOCS / section / "README.md").read_text()
    named = [posixpath.normpath(f"{section}/{match[3]}") for match in LINK.finditer(index)]
    pages = sorted(path.relative_to(DOCS).as_posix() for path in (DOCS / section).glob("*.md"))
    order = [page for page in dict.fromkeys(named) if page in pages]
    return [page for page in [*order, *(page for page in pages if page not in order)] if not page.endswith("README.md")]
