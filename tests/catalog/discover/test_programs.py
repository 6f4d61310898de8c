"""Programs that listen on a port: what their folder says of them, and what is refused before any build."""

import json

import pytest

from prony.catalog.discover.compose import composed
from prony.catalog.discover.current import ReadingAid, find_current
from prony.catalog.discover.node import has_package
from prony.catalog.discover.programs import find_program, is_program, program_below
from prony.catalog.discover.sources import Folder, Sources
from prony.catalog.discover.survey import is_python_target, survey_app
from prony.core.errors import UsageError

GO = 'package main\n\nimport "net/http"\n\nfunc main() {\n\thttp.ListenAndServe("", nil)\n}\n'
FLASK = "from flask import Flask\napp = Flask(__name__)\n"


def folder(files):
    """The files as a folder, with the names in each of its folders."""

    def names(path):
        before = f"{path}/" if path else ""
        return sorted(
            {name.removeprefix(before).partition("/")[0] for name in files if name.startswith(before)}
        )

    def read(path):
        return files.get(path, "" if any(name.startswith(f"{path}/") for name in files) else None)

    return Folder(read, names)


def package(**more):
    return json.dumps(more)


def find(files, typed="."):
    return find_program(typed, folder(files))


def test_a_go_module_is_built_with_what_is_locked_and_started():
    found = find({"go.mod": "module shop", "go.sum": "", "main.go": GO})
    assert found.command == ("{build}/server",)
    assert found.build == (("{go}", "build", "-trimpath", "-buildvcs=false", "-o", "{build}/server", "."),)
    assert (found.packages, found.is_carried) == ("go.sum", False)


@pytest.mark.parametrize("typed", [".", "go.mod", "./cmd/web", "cmd/web/main.go"])
def test_the_only_command_of_a_go_module_is_found(typed):
    files = {"go.mod": "module shop", "shop.go": "package shop", "cmd/web/main.go": GO}
    assert find(files, typed).build[0][-1] == "./cmd/web"


def test_of_several_commands_one_must_be_named():
    files = {"go.mod": "module shop", "cmd/mail/main.go": GO, "cmd/job/main.go": GO}
    with pytest.raises(UsageError, match="expected one of cmd/job, cmd/mail") as refused:
        find(files)
    assert refused.value.hint == "--app ./cmd/job"


@pytest.mark.parametrize(
    ("files", "wanted"),
    [
        ({"cmd/server/main.go": GO, "cmd/migrate/main.go": GO}, "./cmd/server"),
        (
            {
                "cmd/b/main.go": GO,
                "cmd/a/main.go": GO,
                "Dockerfile": "RUN CGO=0 go build -o /x \\\n ./cmd/b/",
            },
            "./cmd/b",
        ),
        ({"svc/main.go": GO, "Makefile": "run:\n\tgo run ./svc/main.go -v\n"}, "./svc"),
    ],
)
def test_of_several_go_commands_the_one_that_is_built_or_serves_is_taken(files, wanted):
    assert find({"go.mod": "module shop", **files}).build[0][-1] == wanted


def test_a_go_module_without_a_program_is_refused():
    with pytest.raises(UsageError, match="has no main package"):
        find({"go.mod": "module shop", "shop.go": "package shop", "shop_test.go": GO})


@pytest.mark.parametrize(
    ("manifest", "more", "command"),
    [
        ({"scripts": {"start": "node --enable-source-maps dist/web.js"}}, ("dist/web.js",), "dist/web.js"),
        ({"main": "lib/shop.js"}, ("lib/shop.js",), "lib/shop.js"),
        ({"main": "lib/shop.js"}, ("server.js", "lib/shop.js"), "server.js"),
        ({}, ("index.js",), "index.js"),
    ],
)
def test_the_file_that_node_starts_is_found_as_npm_finds_it(manifest, more, command):
    found = find({"package.json": package(**manifest), **dict.fromkeys(more, "")})
    assert found.command[0] == "{node}"
    assert found.command[-1] == command


@pytest.mark.parametrize("script", ["NODE_ENV=x node shop.js", "next start -p $PORT", "node a.js && true"])
def test_a_script_that_is_more_than_node_is_started_by_npm(script):
    assert find({"package.json": package(scripts={"start": script})}).command[:2] == ("{npm}", "start")


def test_packages_of_a_lock_are_installed_into_a_copy():
    manifest = package(main="shop.js", dependencies={"express": "^5"})
    found = find({"package.json": manifest, "package-lock.json": "{}", "shop.js": ""})
    assert [step[:2] for step in found.build] == [("{npm}", "ci"), ("{cp}", "-R")]
    assert "--omit=dev" in found.build[0]
    assert (found.packages, found.is_carried, found.product) == ("package-lock.json", True, "package.json")


def test_what_builds_a_program_is_installed_and_stays():
    manifest = package(scripts={"build": "tsc", "start": "node dist/web.js"}, devDependencies={"a": "1"})
    found = find({"package.json": manifest, "package-lock.json": "{}"})
    assert [step[1:3] for step in found.build] == [("ci", "--no-audit"), ("run", "build"), ("-R", "-P")]
    assert "--include=dev" in found.build[0]


@pytest.mark.parametrize(
    "scripts",
    [
        {"start": "tsx src/shop.ts"},
        {"start": "tsc && node dist/shop.js"},
        {"start": "node -r tsx/cjs src/shop.js"},
        {"start": "node --import=tsx src/shop.js"},
        {"start": "node node_modules/.bin/tsx src/shop.js"},
        {"start": "node src/shop.js", "prestart": "tsc"},
        {"start": "node src/shop.js", "prepare": "husky"},
        {"start": "node src/shop.js", "postinstall": "prisma generate"},
    ],
)
def test_what_the_start_or_the_installing_needs_of_development_is_installed(scripts):
    manifest = package(scripts=scripts, devDependencies={"tsx": "4"})
    there = {"src/shop.js": "", "node_modules/.bin/tsx": "", "package-lock.json": "{}"}
    assert "--include=dev" in find({"package.json": manifest, **there}).build[0]


def test_what_only_development_needs_is_not_installed():
    scripts = {"start": "node shop.js", "test": "jest"}
    files = {"package.json": package(scripts=scripts, devDependencies={"jest": "29"}), "shop.js": ""}
    assert find(files).build == ()
    files["package.json"] = package(scripts=scripts, dependencies={"a": "1"}, devDependencies={"jest": "29"})
    assert "--omit=dev" in find(files).build[0]


@pytest.mark.parametrize("lock", ["pnpm-lock.yaml", "yarn.lock", "readme"])
def test_a_file_that_is_still_to_be_built_beside_packages_is_refused(lock):
    manifest = package(scripts={"build": "tsc", "start": "node dist/shop.js"}, dependencies={"a": "1"})
    files = {"package.json": manifest, lock: "", "node_modules/a/index.js": ""}
    with pytest.raises(
        UsageError, match=r"starts `dist/shop.js`, which is not there; Prony builds nothing"
    ) as no:
        find(files)
    assert "npm run build" in (no.value.hint or "")
    assert find({**files, "dist/shop.js": ""}).packages == "node_modules, as it is"


def test_packages_that_nothing_locks_are_used_as_they_lie_there():
    manifest = package(main="shop.js", dependencies={"express": "^5"})
    found = find({"package.json": manifest, "shop.js": "", "node_modules/express/index.js": ""})
    assert (found.build, found.packages) == ((), "node_modules, as it is")


def test_packages_that_are_nowhere_are_the_newest_that_are_allowed_and_that_is_said():
    manifest = package(main="shop.js", dependencies={"express": "^5"})
    found = find({"package.json": manifest, "shop.js": ""})
    assert found.build[0][:2] == ("{npm}", "install")
    assert "nothing locks them" in found.packages


def test_packages_of_another_lock_are_refused():
    manifest = package(main="shop.js", dependencies={"express": "^5"})
    with pytest.raises(UsageError) as refused:
        find({"package.json": manifest, "shop.js": "", "yarn.lock": ""})
    assert "install them where the app is" in (refused.value.hint or "")


@pytest.mark.parametrize(
    ("files", "typed", "served"),
    [
        (["public/index.php"], ".", ("-t", "public")),
        (["index.php"], ".", ("-t", ".")),
        (["web/index.php"], "web/index.php", ("-t", "web")),
        (["router.php", "index.php"], "router.php", ("router.php",)),
    ],
)
def test_php_serves_the_folder_of_its_page(files, typed, served):
    assert find(dict.fromkeys(files, "<?php"), typed).command == ("{php}", "-S", "{host}:{port}", *served)


def test_packages_of_composer_that_are_not_there_are_refused():
    wanted = {"php": "^8", "ext-pdo": "*", "slim/slim": "4"}
    files = {"index.php": "", "composer.json": package(require=wanted)}
    with pytest.raises(UsageError, match="requires slim/slim, and there is no"):
        find(files)
    assert find({**files, "vendor/autoload.php": ""}).packages == "vendor, as it is"


@pytest.mark.parametrize(
    ("line", "files", "command"),
    [
        ("node shop.js --port $PORT", ["shop.js"], ("{node}", "shop.js", "--port", "{port}")),
        ("npm start", [], ("{npm}", "start")),
        ("php -S 0.0.0.0:${PORT}", [], ("{php}", "-S", "{host}:{port}")),
        ("bin/shop --quiet", ["bin/shop"], ("{app_dir}/bin/shop", "--quiet")),
        ("shop $PORT", [], ("{program}", "{port}")),
        ("A=1 ./shop > log", ["shop"], ("{sh}", "-c", "A=1 ./shop > log")),
    ],
)
def test_a_procfile_says_what_is_started(line, files, command):
    there = {"Procfile": f"worker: true\nweb: {line}\n", **dict.fromkeys(files, "")}
    assert find(there).command == command
    assert find(there, "Procfile").source == "`web` in Procfile"


def test_the_program_of_a_procfile_that_is_not_there_is_the_modules():
    files = {"Procfile": "web: shop -quiet", "go.mod": "module shop", "main.go": GO}
    assert find(files).command == ("{build}/server", "-quiet")


@pytest.mark.parametrize(
    ("files", "command"),
    [
        (
            {"Dockerfile": 'FROM node\nCMD ["node", "stall.js"]', "package.json": "{}", "stall.js": ""},
            ("{node}", "stall.js"),
        ),
        (
            {"compose.yaml": "services: {web: {command: php -S 0.0.0.0:80 -t pub}}"},
            ("{php}", "-S", "{host}:{port}", "-t", "pub"),
        ),
        (
            {
                "Dockerfile": 'FROM go AS b\nFROM scratch\nENTRYPOINT ["/srv/stall", "-q"]',
                "go.mod": "module m",
                "main.go": GO,
            },
            ("{build}/server", "-q"),
        ),
        # What serves in an image need not be there without it.
        (
            {"Dockerfile": 'CMD ["nginx", "-g", "daemon off;"]', "server.js": "", "package.json": "{}"},
            ("{node}", "server.js"),
        ),
    ],
)
def test_an_image_says_what_is_started_where_the_program_is_the_folders(files, command):
    assert find(files).command == command


# What starts it, and what Prony starts: at its own address, by a program of the system.
AT_OUR_ADDRESS = {
    "bundle exec puma -C config/puma.rb -p ${PORT:-3000}": "{puma} -b tcp://{host}:{port} -C config/puma.rb",
    "puma --bind=tcp://0.0.0.0:80 -t 1:5": "{puma} -b tcp://{host}:{port} -t 1:5",
    "rackup --host 0.0.0.0 -p 4567 shop.ru": "{rackup} --host {host} --port {port} shop.ru",
    "/usr/bin/unicorn -c unicorn.rb -l 127.0.0.1:80": "{unicorn} -l {host}:{port} -c unicorn.rb",
    "bundle exec rails server -e production -b 0.0.0.0": "{rails} server -e production -b {host} -p {port}",
    "node --env-file-if-exists .env shop.js": "{node} --env-file-if-exists .env shop.js",
    "morbo -l http://*:3000 -w lib wiki.pl": "{morbo} -l http://{host}:{port} -w lib wiki.pl",
    "npx --yes tsx shop.js --port 4000": "{npm} exec --silent -- tsx shop.js --port {port}",
    "exec node shop.js --port 4000": "{node} shop.js --port {port}",
    "/usr/bin/env A=1 node shop.js": "{node} shop.js",
    "perl wiki.pl daemon -m production -l 'http://*:3000'": (
        "{perl} wiki.pl daemon -m production -l http://{host}:{port}"
    ),
    "ruby shop.rb": "{ruby} shop.rb",
    "php -S localhost:80 -t pub router.php": "{php} -S {host}:{port} -t pub router.php",
    "node shop.js --port 4000 --cache 4000": "{node} shop.js --port {port} --cache 4000",
    "/srv/shop -addr 127.0.0.1:8080 -peer 10.0.0.1:9": "{build}/server -addr {host}:{port} -peer 10.0.0.1:9",
    "/srv/shop --listen=http://0.0.0.0:80 --host 10.0.0.1": (
        "{build}/server --listen=http://{host}:{port} --host {host}"
    ),
}


@pytest.mark.parametrize("line", AT_OUR_ADDRESS)
def test_the_address_of_a_program_is_replaced_where_its_command_has_one(line):
    there = {"Procfile": f"web: {line}", "package.json": "{}", "shop.js": ""}
    there |= {"go.mod": "module m", "main.go": GO} if "/srv/" in line else {}
    assert " ".join(find(there).command) == AT_OUR_ADDRESS[line]


# By the command: what is started, and the steps before it.
STEPS = {
    "npx prisma migrate deploy && exec node shop.js": ("{node} shop.js", "npx prisma migrate deploy"),
    "rm -f tmp/a.pid && bundle exec rails s -p 3000 -b '0.0.0.0'": (
        "{rails} s -b {host} -p {port}",
        "rm -f tmp/a.pid",
    ),
    "./wait-for-it.sh db:5432 -- node shop.js": ("{node} shop.js", "./wait-for-it.sh db:5432"),
    "npm run fill; npm start -- --quiet": ("{npm} start -- --quiet", "npm run fill"),
    "carton exec -- perl shop.pl daemon": ("{perl} shop.pl daemon -l http://{host}:{port}", ""),
    "node -e 'a && b; c' && php -S 0.0.0.0:80": ("{php} -S {host}:{port}", "node -e 'a && b; c'"),
}


@pytest.mark.parametrize("line", STEPS)
def test_the_last_step_of_a_command_is_what_starts(line):
    command, before = STEPS[line]
    files = {"package.json": package(scripts={"start": "node shop.js -q"}), "shop.js": ""}
    for place in ({"Dockerfile": f"CMD {line}"}, {"Procfile": f"web: {line}"}):
        found = find({**files, **place})
        said = (f"`{before}`, which is not run",) if before else ()
        assert (" ".join(found.command), found.left_out) == (command, said)


def test_steps_of_which_the_last_is_not_known_are_a_shells():
    found = find({"Procfile": "web: npm start && ./shop", "package.json": "{}"})
    assert found.command == ("{sh}", "-c", "npm start && ./shop")


def test_what_make_builds_and_starts_in_one_line_is_the_modules_program():
    made = "run:\n\tgo build -o bin/shop . && ./bin/shop -port 9000\n"
    found = find({"go.mod": "module shop", "main.go": GO, "Makefile": made})
    assert found.command == ("{build}/server", "-port", "{port}")


@pytest.mark.parametrize("end", ['exec "$@"', '"$@"', 'if [ a ]; then\n  exec su-exec www "$@"\nfi\n'])
def test_an_entry_that_hands_on_is_not_what_starts(end):
    files = {
        "Dockerfile": 'WORKDIR /srv\nENTRYPOINT ["/srv/e.sh"]\nCMD ["node", "a.js", "-q"]',
        "e.sh": f"#!/bin/sh\nnode fill.js\n{end}",
        "package.json": package(scripts={"start": "node a.js"}),
        "a.js": "",
    }
    assert find(files).command == ("{node}", "a.js", "-q")


def test_a_script_with_the_name_of_an_images_is_the_folders_own():
    script = "#!/bin/sh\nnode fill.js\nexec node a.js --port 80\n\n"
    image = 'FROM node\nENTRYPOINT ["./docker-entrypoint.sh"]\n'
    found = find({"Dockerfile": image, "docker-entrypoint.sh": script, "package.json": "{}", "a.js": ""})
    assert found.command == ("{node}", "a.js", "--port", "{port}")


def test_a_script_that_people_start_by_hand_is_the_program():
    files = {"run.sh": "#!/bin/bash\nnpm ci && node a.js -q\nwait\n", "package.json": "{}", "a.js": ""}
    assert find(files).command == ("{node}", "a.js", "-q")


OF_COMPOSER = [
    "php -S localhost:8080 -t public public/index.php",
    ["Composer\\Config::disableProcessTimeout", "@php -S localhost:8080 -t public public/index.php"],
]


@pytest.mark.parametrize("said", OF_COMPOSER)
@pytest.mark.parametrize("line", ["", "composer start", "composer run-script --timeout=0 start"])
def test_what_a_script_of_composer_starts_is_started(said, line):
    files = {"composer.json": package(scripts={"start": said}), "public/index.php": ""}
    files |= {"Procfile": f"web: {line}"} if line else {}
    found = find(files)
    assert " ".join(found.command) == "{php} -S {host}:{port} -t public public/index.php"
    assert found.source == ("`web` in Procfile" if line else "`scripts.start` in composer.json")
    with pytest.raises(UsageError, match="requires slim/slim, and there is no"):
        find({**files, "composer.json": package(scripts={"start": said}, require={"slim/slim": "4"})})


@pytest.mark.parametrize("text", ["[]", '{"scripts": [1]}', '{"scripts": {"start": [1, {}]}}'])
def test_scripts_of_composer_that_are_none_start_nothing(text):
    assert find({"composer.json": text, "index.php": ""}).source == "index.php"


@pytest.mark.parametrize(
    ("files", "command"),
    [
        ({"app.rb": "require 'sinatra'\nget('/') { 'a' }\n", "Gemfile": ""}, "{ruby} app.rb"),
        (
            {"myapp.pl": "use Mojolicious::Lite -signatures;\n"},
            "{perl} myapp.pl daemon -l http://{host}:{port}",
        ),
        ({"app.pl": "use Dancer2;\n"}, "{perl} app.pl"),
    ],
)
def test_an_app_that_is_one_script_is_started_as_its_author_types_it(files, command):
    assert " ".join(find(files).command) == command


def test_a_rack_app_that_nothing_starts_is_started_by_puma():
    assert find({"config.ru": "run App", "Gemfile": ""}).command == ("{puma}", "-b", "tcp://{host}:{port}")


def test_plain_variables_of_an_image_are_the_programs_and_secrets_are_not():
    variables = "NODE_ENV=test PORT=80 API_TOKEN=x SITE=$HOME MENU=/srv/menu.json"
    image = f'WORKDIR /srv\nENV {variables}\nCMD ["node", "shop.js"]'
    files = {"Dockerfile": image, "package.json": "{}", "shop.js": ""}
    assert find(files).environment == {"NODE_ENV": "test", "MENU": "menu.json"}


def test_what_was_typed_as_todays_command_is_the_program():
    assert find_program(".", folder({"Procfile": "web: node a.js", "b.js": ""}), "node b.js").command == (
        "{node}",
        "b.js",
    )


def test_braces_that_a_shell_would_read_are_refused():
    with pytest.raises(UsageError, match="whose braces"):
        find({"Procfile": "web: ./shop ${SHOP_PORT:?none}"})


@pytest.mark.parametrize("line", ["python shop.py", "python3 -m shop", "/usr/bin/gunicorn -c conf"])
def test_a_procfile_that_names_no_app_in_python_is_refused(line):
    with pytest.raises(UsageError) as refused:
        find({"Procfile": f"web: {line}"})
    assert "--app module:attribute" in (refused.value.hint or "")


@pytest.mark.parametrize(
    ("files", "target"),
    [
        ({"Procfile": "web: gunicorn -w 4 shop:app", "shop.py": FLASK}, "shop:app"),
        ({"Procfile": "web: gunicorn web.shop --log-file -", "web/shop.py": FLASK}, "web.shop:app"),
        ({"wsgi.py": FLASK.replace("app", "application")}, "wsgi:application"),
        ({"main.py": "from fastapi import FastAPI\napi = FastAPI()\n"}, "main:api"),
    ],
)
def test_the_app_in_python_of_a_folder_is_found(files, target):
    files = {**files, "requirements.txt": "flask"}
    today = find_current(folder(files), ReadingAid()).current
    named = today.target if today else ""
    assert is_python_target(".", Sources(files.get), named)
    assert survey_app(".", Sources(files.get), named=named).target == target


def test_a_folder_without_an_app_in_python_has_none():
    assert not is_python_target(".", Sources({"shop.py": "", "app.py": "import os\n"}.get))


@pytest.mark.parametrize("typed", ["shop", "shop.py", "../shop.js", "/srv/shop.js", "no.php"])
def test_what_is_no_program_of_the_folder_is_none(typed):
    assert find({"shop.py": "", "../shop.js": "", "/srv/shop.js": "", "shop/a.py": ""}, typed) is None


def test_a_folder_that_says_nothing_is_refused_with_what_would():
    with pytest.raises(UsageError, match=r"expected manage\.py, .*go\.mod, package\.json"):
        find({"readme.txt": ""})


@pytest.mark.parametrize("text", ["[]", "{", "[" * 100_000])
def test_a_manifest_that_is_none_is_refused(text):
    with pytest.raises(UsageError, match=r"cannot read `package\.json`"):
        find({"package.json": text})


def test_what_compose_builds_below_is_the_folders_program_with_its_command():
    files = {
        "compose.yaml": "services:\n  api: {build: ./services/api, command: node index.js --port 4000}\n",
        "services/api/index.js": "",
        "services/api/package.json": package(scripts={"start": "node index.js"}),
    }
    assert program_below(folder(files)) == "services/api"
    above = composed(folder(files).read, "services/api")
    found = find_program(".", folder(files).below("services/api"), above=above)
    assert found.command == ("{node}", "index.js", "--port", "{port}")


def test_of_several_folders_with_programs_one_must_be_named():
    files = {
        "web/package.json": package(scripts={"start": "next start"}),
        "api/go.mod": "",
        "docs/go.mod": "",
    }
    with pytest.raises(UsageError, match="apps are in `api`, `web`; expected the folder of one") as refused:
        program_below(folder(files))
    assert refused.value.hint == "--dir api --app ."
    assert program_below(folder({"package.json": package(workspaces=["web"])})) is None
    for start in ("react-scripts start", "vite --port 3000", "ng serve"):
        files["web/package.json"] = package(scripts={"start": start})
        assert program_below(folder(files)) == "api"


WORKSPACE = {
    "package.json": package(workspaces=["services/*"]),
    "package-lock.json": "{}",
    "services/api/server.js": "",
    "services/api/package.json": package(scripts={"start": "node server.js"}, dependencies={"@shop/db": "*"}),
    "services/db/package.json": package(name="@shop/db"),
}


def test_a_package_of_a_workspace_is_built_with_the_lock_of_all_and_starts_where_it_is():
    found = find(WORKSPACE, "services/api/")
    assert found.command == ("{env}", "-C", "services/api", "{node}", "server.js")
    assert (found.packages, found.is_carried) == ("package-lock.json", True)
    assert [one[1] for one in found.build if one[0] == "{npm}"] == ["ci"]
    assert set(found.tools) == {"node", "npm", "cp", "env"}


@pytest.mark.parametrize("of_root", [False, True])
def test_the_script_build_of_a_workspace_makes_its_packages_else_that_of_the_package(of_root):
    own = package(scripts={"start": "node dist/server.js", "build": "tsc"}, devDependencies={"tsc": "1"})
    root = package(workspaces={"packages": ["./services/*"]}, scripts={"build": "tsc -b"} if of_root else {})
    found = find({**WORKSPACE, "package.json": root, "services/api/package.json": own}, "services/api")
    where = () if of_root else ("-w", "services/api")
    assert "--include=dev" in found.build[0]
    assert found.build[1] == ("{npm}", "run", "build", *where)


def test_a_workspace_without_a_lock_of_npms_is_run_with_what_lies_there_else_with_the_newest():
    files = {name: text for name, text in WORKSPACE.items() if name != "package-lock.json"}
    found = find({**files, "yarn.lock": "", "node_modules/x/index.js": ""}, "services/api")
    assert found.command == ("{env}", "-C", "services/api", "{node}", "server.js")
    assert (found.packages, found.build) == ("node_modules, as it is", ())
    found = find(files, "services/api")
    assert (found.build[0][1], found.command[2]) == ("install", "services/api")
    assert found.packages.startswith("package.json, the newest")
    with pytest.raises(UsageError, match=r"installs none of `yarn\.lock`"):
        find({**files, "yarn.lock": ""}, "services/api")


def test_what_starts_a_package_of_a_workspace_stands_in_its_own_files_or_above():
    compose = "services:\n  api: {build: ./services/api, command: node server.js --port 4000}\n"
    for more in ({"compose.yaml": compose}, {"services/api/Procfile": "web: node server.js --port 4000\n"}):
        found = find({**WORKSPACE, **more}, "services/api")
        assert found.command[3:] == ("{node}", "server.js", "--port", "{port}")


def test_a_package_that_another_one_requires_is_not_the_program_of_the_folder_above():
    library = {
        "services/db/index.js": "",
        "services/db/package.json": package(name="@shop/db", main="index.js"),
    }
    assert program_below(folder({**WORKSPACE, **library})) == "services/api"
    assert program_below(folder(library)) == "services/db"


def test_of_two_programs_of_a_workspace_none_is_chosen_because_it_says_more():
    other = {
        "services/tasks/index.js": "",
        "services/tasks/package.json": package(name="tasks", main="index.js"),
    }
    with pytest.raises(UsageError, match="apps are in `services/api`, `services/tasks`"):
        program_below(folder({**WORKSPACE, **other}))


def test_a_command_that_is_typed_starts_the_package_of_a_workspace():
    found = find_program("services/api", folder(WORKSPACE), "node server.js --fast")
    assert found.command == ("{env}", "-C", "services/api", "{node}", "server.js", "--fast")


def test_a_folder_with_a_lock_of_its_own_is_no_package_of_the_workspace_above():
    files = {**WORKSPACE, "services/api/package-lock.json": "{}"}
    assert has_package(folder(WORKSPACE), "services/api")
    assert not has_package(folder(files), "services/api")
    assert not has_package(folder(WORKSPACE), "tools/api")
    deeper = {**WORKSPACE, "services/api/demo/package.json": "{}"}
    assert not has_package(folder(deeper), "services/api/demo")


@pytest.mark.parametrize(
    ("manifest", "files", "is_one"),
    [
        ({"workspaces": ["web"]}, (), False),
        ({"main": "index.js"}, (), False),
        ({"main": "lib/a.js"}, ("lib/a.js",), True),
        ({"scripts": {"start": "node a.js"}}, (), True),
    ],
)
def test_a_package_json_is_a_program_if_it_says_what_starts(manifest, files, is_one):
    assert is_program(folder({"package.json": package(**manifest), **dict.fromkeys(files, "")})) is is_one


def test_of_several_programs_in_go_the_one_that_runs_today_is_meant():
    files = {
        "go.mod": "module quotes",
        "cmd/quotesd/main.go": GO,
        "cmd/load/main.go": GO,
        "quotes.service": "[Service]\nExecStart=/usr/local/bin/quotesd -listen 127.0.0.1:7070 -size 512\n",
    }
    found = find_program(".", folder(files))
    assert found.command == ("{build}/server", "-listen", "{host}:{port}", "-size", "512")
    assert found.build[0][-1] == "./cmd/quotesd"


def test_a_folder_whose_dockerfile_starts_php_in_a_folder_below_is_the_program():
    command = 'FROM php\nCMD ["php", "-S", "0.0.0.0:8080", "-t", "htdocs", "htdocs/index.php"]'
    whole = folder({"Dockerfile": command, "htdocs/index.php": ""})
    assert is_program(whole)
    assert find_program(".", whole).command == (
        "{php}",
        "-S",
        "{host}:{port}",
        "-t",
        "htdocs",
        "htdocs/index.php",
    )


def test_a_command_of_which_nothing_is_here_is_named():
    files = {"tea.service": "[Service]\nExecStart=/usr/bin/starman bin/web.psgi\n"}
    with pytest.raises(
        UsageError, match=r"`ExecStart` in tea.service is `/usr/bin/starman bin/web.psgi`, of which"
    ):
        find_program(".", folder(files))


@pytest.mark.parametrize(
    ("files", "left_out"),
    [
        (
            {
                "compose.yaml": (
                    "services:\n  web: {command: node a.js, environment: {URL: /x}, env_file: [live.env]}\n"
                )
            },
            (
                "its variables, which are of its network: URL",
                "the variables in live.env: --env-file live.env",
            ),
        ),
        (
            {"Dockerfile": 'ENV API_TOKEN=x KEY=$HOME PORT=80\nCMD ["node", "a.js"]'},
            ("`API_TOKEN`, `KEY`: --env NAME=value passes a variable",),
        ),
        (
            {
                "Dockerfile": 'WORKDIR /srv\nENTRYPOINT ["/srv/e.sh"]\nCMD ["node", "a.js"]',
                "e.sh": '#!/bin/sh\nexec "$@"',
            },
            ("`/srv/e.sh`, which is not run",),
        ),
        (
            {"Procfile": "web: ./go.sh", "go.sh": "#!/bin/sh\nnode migrate.js\nnode a.js\n"},
            ("the rest of go.sh",),
        ),
        *(
            (
                {"Dockerfile": f"CMD {json.dumps(text.split())}"},
                (f"`CMD` in Dockerfile: `{text}`, which Prony does not start",),
            )
            for text in ("pm2-runtime a.js -i 4", "bun run a.js", "rr serve", "frankenphp run", "air")
        ),
    ],
)
def test_what_of_a_programs_start_is_not_taken_over_is_named(files, left_out):
    found = find({"package.json": package(scripts={"start": "node a.js"}), "a.js": "", **files})
    assert (found.command, found.left_out) == (("{node}", "a.js"), left_out)


def test_the_variables_of_an_image_whose_command_is_not_started_are_the_programs():
    image = 'ENV SITE=a API_KEY=b\nCMD ["pm2-runtime", "a.js"]'
    found = find({"Dockerfile": image, "package.json": package(scripts={"start": "node a.js"}), "a.js": ""})
    assert found.environment == {"NODE_ENV": "production", "SITE": "a"}
    assert found.left_out[-1] == "`API_KEY`: --env NAME=value passes a variable"


def test_variables_beside_a_program_are_offered_unless_they_are_named_already():
    files = {"package.json": package(scripts={"start": "node a.js"}), "a.js": "", ".env": "A=1\nexport B=2\n"}
    assert find(files).offered == ("A", "B")
    compose = "services: {web: {command: node a.js, env_file: .env}}"
    assert find({**files, "compose.yaml": compose}).offered == ()


@pytest.mark.parametrize(
    ("build", "package"),
    [
        ("go build -o /usr/local/bin/shop .", "."),
        ("go build -o /bin/shop ./cmd/web", "./cmd/web"),
        ("go install ./cmd/shop", "./cmd/shop"),
        ("go build -o /out ./cmd/web\nCOPY --from=build /out /bin/shop", "./cmd/web"),
    ],
)
def test_a_go_program_on_the_path_keeps_its_words(build, package):
    files = {
        "go.mod": "module m",
        "cmd/web/main.go": GO,
        "cmd/shop/main.go": GO,
        "Dockerfile": f'RUN {build}\nCMD ["shop", "serve", "--workers", "4"]',
    }
    if package == ".":
        files["main.go"] = GO
    if "COPY" in build:
        del files["cmd/shop/main.go"]
    found = find(files)
    assert found.command == ("{build}/server", "serve", "--workers", "4")
    assert found.build[0][-1] == package
    assert found.left_out == ()


def test_a_program_that_is_not_the_modules_is_not_started_by_its_words():
    files = {"go.mod": "module m", "main.go": GO, "Dockerfile": 'CMD ["other", "-x"]'}
    found = find(files)
    assert found.command == ("{build}/server",)
    assert found.left_out == ("`CMD` in Dockerfile: `other -x`, which Prony does not start",)


RAILS = {
    "config.ru": "run App",
    "bin/rails": "",
    "bin/docker-entrypoint": '#!/bin/bash -e\nexec "${@}"\n',
    "Dockerfile": (
        "FROM ruby\nWORKDIR /rails\nENV RAILS_ENV=production\nCOPY . .\n"
        'ENTRYPOINT ["/rails/bin/docker-entrypoint"]\nCMD ["./bin/thrust", "bin/rails", "server"]'
    ),
}


def test_rails_behind_its_proxy_is_started_without_it():
    found = find(RAILS)
    assert " ".join(found.command) == "{app_dir}/bin/rails server -b {host} -p {port}"
    assert found.environment == {"RAILS_ENV": "production"}
    assert found.left_out[-1] == "`./bin/thrust`, the proxy before it, which is not started"


def test_puma_in_the_place_of_what_is_not_known_has_the_variables_of_the_image():
    files = {**RAILS, "Dockerfile": 'ENV RAILS_ENV=production\nCMD ["foreman", "start"]'}
    assert find(files).environment == {"RAILS_ENV": "production"}


@pytest.mark.parametrize(
    ("line", "command"),
    [
        ("pnpm --filter api start", "{npm} --prefix apps/api run --silent start"),
        ("pnpm --filter=@shop/web run start", "{npm} --prefix web run --silent start"),
        ("pnpm -C apps/api start", "{npm} --prefix apps/api run --silent start"),
        ("yarn workspace api start", "{npm} --prefix apps/api run --silent start"),
        ("yarn start", "{npm} run --silent start"),
        ("pnpm --filter none start", "{program} --filter none start"),
    ],
)
def test_the_script_of_one_package_of_several_is_run_in_its_folder(line, command):
    files = {
        "Procfile": f"web: {line}",
        "package.json": package(name="all"),
        "apps/api/package.json": package(name="api"),
        "web/package.json": package(name="@shop/web"),
    }
    assert " ".join(find(files).command) == command
