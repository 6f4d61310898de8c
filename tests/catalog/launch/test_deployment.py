"""A command as a unit of systemd and as the line of a container: what they start is what it starts."""

import shutil
import subprocess

import pytest

from prony.catalog.launch.commands import Deployment, cautions, container_line, parsed, unit_text

COMMAND = (
    "cd '/srv/my shop' && PYTHONPATH=src A='1 %' KEY=\"$KEY\" "
    "/cache/environments/gunicorn/venv/bin/gunicorn --workers 4 'shop:create(\"a\")' '$5'"
)
ONE = Deployment(
    "gunicorn+shop",
    COMMAND,
    user="web",
    image="python:3.11-slim",
    install="pip install gunicorn==1",
    limits={"MemoryMax": "1000"},
)


def test_a_command_has_a_folder_variables_and_words():
    found = parsed(COMMAND)
    assert found.folder == "/srv/my shop"
    assert (found.variables, found.asked) == ({"PYTHONPATH": "src", "A": "1 %"}, ("KEY",))
    assert found.words[1:] == ("--workers", "4", 'shop:create("a")', "$5")


@pytest.mark.parametrize(
    "command",
    [
        "(cd a && b) &\nnginx",
        "cd a && write > x && b",
        "gunicorn",
        'cd /x && "unclosed',
        "cd /x && A=1",
        "cd /x && A=1 B=2",
        "",
    ],
)
def test_what_is_no_command_of_one_program_is_left_to_a_shell(command):
    assert parsed(command) is None
    assert "ExecStart=/bin/sh -c " in unit_text(Deployment("x", command))
    assert container_line(Deployment("x", command, image="debian")) is None


def test_a_unit_has_all_that_the_command_has():
    lines = unit_text(ONE).splitlines()
    assert "User=web" in lines
    assert "WorkingDirectory=/srv/my shop" in lines
    assert 'Environment=PYTHONPATH=src "A=1 %%"' in lines
    assert "EnvironmentFile=/etc/gunicorn-shop.env" in lines
    start = '/cache/environments/gunicorn/venv/bin/gunicorn --workers 4 "shop:create(\\"a\\")" $$5'
    assert f"ExecStart={start}".replace(" $$5", ' "$$5"') in lines
    assert "MemoryMax=1000" in lines


def test_a_unit_starts_from_files_that_root_wrote_once_and_its_user_may_read():
    command = (
        "cd /srv/shop && prony servers uwsgi-psgi --file socket.ini --set 'a.b=1 2' > socket.ini && "
        "A=1 /usr/bin/uwsgi --ini socket.ini app.psgi"
    )
    one = Deployment("uwsgi-psgi+shop", command, image="debian")
    lines = unit_text(one).splitlines()
    assert "ExecStart=/usr/bin/uwsgi --ini /etc/uwsgi-psgi-shop/socket.ini app.psgi" in lines
    assert (
        "# Once, as root: mkdir -p /etc/uwsgi-psgi-shop && prony servers uwsgi-psgi --file socket.ini "
        "--set 'a.b=1 2' > /etc/uwsgi-psgi-shop/socket.ini"
    ) in lines
    assert "--volume /etc/uwsgi-psgi-shop/socket.ini:/etc/uwsgi-psgi-shop/socket.ini:ro" in container_line(
        one
    )


@pytest.mark.parametrize(
    "file",
    ["/etc/passwd", "../x", "a b", "x > y", "'x\ny'"],
    ids=["absolute", "above", "two", "again", "lines"],
)
def test_a_file_elsewhere_is_left_to_a_shell(file):
    command = f"cd /srv/shop && prony servers x --file y > {file} && /opt/x"
    assert parsed(command) is None


def test_no_text_of_a_command_begins_a_line_of_its_own():
    install = "pip install 'x\nUser=root'"
    made = unit_text(Deployment("x\nUser=root", "cd / && a", image="debian", install=install))
    assert "\nUser=root" not in made


@pytest.mark.skipif(not shutil.which("systemd-analyze"), reason="systemd is not on this machine")
def test_systemd_takes_the_unit(tmp_path):
    command = "cd /tmp && A='1 %' /bin/echo --workers 4 'a \"b\"' '$5'"
    (tmp_path / "shop.service").write_text(unit_text(Deployment("shop", command, user="root")))
    done = subprocess.run(
        ["systemd-analyze", "verify", tmp_path / "shop.service"], capture_output=True, text=True, check=False
    )
    assert "shop.service:" not in done.stderr, done.stderr


def test_a_container_starts_the_same_words_with_the_program_of_its_image():
    line = container_line(ONE)
    assert line.startswith("docker run --rm --network host --workdir '/srv/my shop' ")
    assert "--volume '/srv/my shop:/srv/my shop'" in line
    assert "--env KEY" in line
    assert "pip install gunicorn==1 && exec env PYTHONPATH=src" in line
    assert " gunicorn --workers 4 " in line


def test_a_program_that_was_built_is_mounted():
    made = container_line(
        Deployment("go", "cd /srv/shop && PORT=1 /cache/builds/go/out/server", image="debian")
    )
    assert "--volume /cache/builds/go/out:/cache/builds/go/out:ro" in made
    assert "/cache/builds/go/out/server" in made


def test_a_unit_with_tls_says_whose_certificate_it_needs():
    command = "cd /srv && /opt/gunicorn --certfile YOUR-CERTIFICATE.pem --keyfile YOUR-KEY.pem shop:app"
    assert "stand for files of your own" in unit_text(Deployment("shop", command))
    assert "of your own" not in unit_text(Deployment("shop", "cd /srv && /opt/gunicorn shop:app"))


@pytest.mark.parametrize("prefix", ["+", "!", "-", "@", ":", "|"])
def test_a_right_of_systemds_before_a_program_is_left_to_a_shell(prefix):
    made = unit_text(Deployment("x", f"cd /srv/shop && {prefix}/bin/sh -c id"))
    assert [line for line in made.splitlines() if line.startswith("ExecStart=")] == [
        f'ExecStart=/bin/sh -c "cd /srv/shop && {prefix}/bin/sh -c id"'
    ]
    assert "# Look before you install it: a shell reads its command." in made


@pytest.mark.parametrize("folder", ["/", "/etc", "/./", "/srv/../.."])
def test_a_folder_with_a_whole_system_is_said_and_given_to_no_container(folder):
    deployment = Deployment("x", f"cd {folder} && /opt/x/server", user="root", image="debian")
    assert container_line(deployment) is None
    assert cautions(deployment) == ["it runs as root", f"its folder is {folder}"]
    assert cautions(ONE) == []
