"""The cache of compiled kernels: cache."""

from __future__ import annotations

from ramify.cli.common import AsJson, app
from ramify.cli.output import print_json, print_line


@app.command
def cache(*, clear: bool = False, json: AsJson = False) -> None:
    """Show the cache of compiled kernels, or clear it.

    Args:
        clear: Remove all entries. Running programs are not disturbed.
    """
    from ramify.runtime.cache import shrink, state

    removed = shrink(0) if clear else None
    now = state()
    if json:
        said = {
            "folder": None if now.folder is None else str(now.folder),
            "entries": now.entries,
            "bytes": now.size,
            "limit_bytes": now.limit,
        }
        if removed is not None:
            said |= {"removed_entries": removed.entries, "removed_bytes": removed.size}
        print_json(said)
        return
    if removed is not None:
        print_line(f"removed {removed.entries} entries, {removed.size / 1e6:.1f} MB")
    if now.folder is None:
        print_line("There is no cache: RAMIFY_CACHE_DIR is off, or its folder cannot be used.")
        return
    size = f"{now.size / 1e6:.1f} MB of at most {now.limit / 1e6:.0f} MB"
    print_line(f"{now.folder}: {now.entries} entries, {size}")
