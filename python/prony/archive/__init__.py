"""The file that a measurement writes, and the source of all reports.

A measuring side writes one Archive; a reading side turns Archives into answers; they meet only here.
docs/archive-format.md is normative.
"""

from prony.archive.archive import Archive, open_archive
from prony.archive.writer import ArchiveWriter, check_free, create, remove_unheld, resume

__all__ = ["Archive", "ArchiveWriter", "check_free", "create", "open_archive", "remove_unheld", "resume"]
