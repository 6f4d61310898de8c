"""The command of a Rack app is read for its numbers, also in its file of settings, and kept to the letter."""

import pytest

from catalog.discover.test_programs import folder
from prony.catalog.discover.current import ReadingAid
from prony.catalog.discover.programs import find_program
from prony.catalog.discover.rack import rack_current, ruby_values
from prony.catalog.discover.recipes import recipe_of
from prony.catalog.schema.command import current_entry, entry_of_today
from prony.catalog.schema.loader import load_catalog
from prony.catalog.schema.settings import resolve
from prony.model.subject import Interface
from prony.study.equal_share import processes_and_threads
from prony.tune.space import Candidate

KNOWN = load_catalog(())
CLUSTER = "threads 1, 5\nworkers Integer(ENV.fetch('WEB_CONCURRENCY', 2))\npreload_app!\n"


def read(line, files=None, **variables):
    whole = folder(
        {"config.ru": "run App", **({"Procfile": f"web: {line}"} if line else {}), **(files or {})}
    )
    return rack_current(find_program(".", whole), whole.read, ReadingAid(variables=variables, cpus=4))


# By the command: the catalogue's server, its words, processes and threads.
COMMANDS = {
    "": ("puma", "", 1, 5),
    "bundle exec puma -w 2 -t 1:3 -p $PORT": ("puma", "-w 2 -t 1:3", 2, 3),
    "puma --workers=0 -t4 -e production": ("puma", "--workers=0 -t4 -e production", 1, 4),
    "puma -w $WEB_CONCURRENCY": None,
    "puma -q -s shop.ru": ("puma", "-q -s shop.ru", 1, 5),
    "unicorn -E production -D config.ru": ("unicorn", "-E production -D config.ru", 1, None),
    "rackup -p 4567 -E production": ("puma", "-E production", 1, 5),
    "rackup -s webrick": None,
    "rails server": None,
    "ruby shop.rb": None,
}


@pytest.mark.parametrize("line", COMMANDS)
def test_a_command_is_kept_as_it_is_and_read_for_its_numbers(line):
    found = read(line)
    if COMMANDS[line] is None:
        assert found is None
        return
    server, words, processes, threads = COMMANDS[line]
    assert (found.server, " ".join(found.words)) == (server, words)
    assert processes_and_threads(found, KNOWN) == (processes, threads)


def test_the_mode_of_the_command_is_that_of_all_servers():
    assert read("puma -e staging").environment == {"RACK_ENV": "staging"}
    assert read("unicorn -E staging").environment == {"RACK_ENV": "staging"}


@pytest.mark.parametrize(
    ("line", "files", "variables", "numbers"),
    [
        ("puma -C config/puma.rb", {"config/puma.rb": CLUSTER}, {}, (2, 5)),
        ("puma", {"config/puma.rb": CLUSTER}, {"WEB_CONCURRENCY": "3"}, (3, 5)),
        # The command wins over the file, the file over variables.
        ("puma -w 4", {"config/puma.rb": CLUSTER}, {"WEB_CONCURRENCY": "3"}, (4, 5)),
        ("puma", {"config/puma.rb": "workers 2"}, {"WEB_CONCURRENCY": "3", "MAX_THREADS": "7"}, (2, 7)),
        ("puma -C -", {"config/puma.rb": CLUSTER}, {}, (1, 5)),
        ("puma --no-config", {"config/puma.rb": CLUSTER}, {}, (1, 5)),
        ("puma -e live", {"config/puma/live.rb": "workers 6", "config/puma.rb": CLUSTER}, {}, (6, 5)),
        ("rackup", {"config/puma.rb": "threads 2, 2"}, {}, (1, 2)),
        ("unicorn -c u.rb", {"u.rb": "worker_processes 3"}, {"WEB_CONCURRENCY": "9"}, (3, None)),
        ("puma", {"config/puma.rb": "workers Concurrent.physical_processor_count"}, {}, (None, None)),
    ],
)
def test_a_file_of_settings_is_read_as_its_server_would(line, files, variables, numbers):
    assert processes_and_threads(read(line, files, **variables), KNOWN) == numbers


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("count = ENV.fetch('RAILS_MAX_THREADS') { 3 }\nthreads count, count", {"--threads": "3"}),
        ("threads(1, Integer(ENV['MAX'] || 6))", {"--threads": "8"}),
        ("workers ENV.fetch('NONE', 2).to_i # two", {"--workers": "2"}),
        ("workers (ENV['NONE'] || 2).to_i", {"--workers": "2"}),
        ("worker_processes Etc.nprocessors", {"--workers": "4"}),
        ("workers ENV['NONE'] if ENV['NONE']", {}),
        ("workers ENV['MAX'] if ENV['MAX']", {"--workers": "8"}),
        ("if production\n  workers 2\nend", {"--workers": ""}),
        ("# workers 2\nworkers_of 3", {}),
    ],
)
def test_numbers_in_ruby_are_read_and_never_guessed(text, values):
    assert ruby_values(text, {"MAX": "8"}, cpus=4) == values


def test_rackup_is_started_in_the_place_of_the_server_that_it_starts():
    entry = current_entry(read("rackup"), KNOWN.servers, Interface.RACK)
    assert entry.command == ("{rackup}", "--host", "{host}", "--port", "{port}")
    assert entry.install.programs["rackup"] == ("rackup",)


@pytest.mark.parametrize(
    ("line", "files", "kept"),
    [
        (
            "puma -q -C config/puma.rb",
            {"config/puma.rb": CLUSTER},
            {"config": "config/puma.rb", "workers": 1},
        ),
        ("puma", {"config/puma.rb": CLUSTER}, {"config": "config/puma.rb"}),
        ("unicorn -c u.rb", {"u.rb": "worker_processes 3"}, {"config": "u.rb"}),
        ("puma -w 2", {}, {"config": "-"}),
    ],
)
def test_settings_that_are_tried_have_the_file_of_today(line, files, kept):
    found = read(line, files)
    entry = entry_of_today(KNOWN.servers[found.server], found)
    assert kept.items() <= resolve(entry, {}, 2).items()


@pytest.mark.parametrize(
    ("line", "one", "shell"),
    [
        ("puma -q -w 2 -t 1:5", Candidate("puma", 4, 3), "puma -q --workers 4 --threads 3:3 config.ru"),
        ("puma -C config/puma.rb", Candidate("puma", 1, 3), None),
    ],
)
def test_an_answer_is_a_command_that_is_read_back(line, one, shell):
    files = {"config/puma.rb": CLUSTER} if shell is None else {}
    recipe = recipe_of(one, "config.ru", "rack", today=read(line, files))
    assert recipe.shell == (shell or "puma -C config/puma.rb --workers 0 --threads 3:3 config.ru")
    assert processes_and_threads(read(recipe.shell, files), KNOWN) == (one.workers, one.threads)


def test_an_answer_in_other_forms_listens_where_it_should():
    forms = dict(recipe_of(Candidate("puma", 2, 3), "config.ru", "rack").forms("/srv/tea"))
    assert forms["Procfile"] == "web: puma --bind tcp://0.0.0.0:$PORT --workers 2 --threads 3:3 config.ru\n"
    assert "ExecStart=/usr/bin/puma --bind tcp://127.0.0.1:8000 --workers 2" in forms["systemd"]
