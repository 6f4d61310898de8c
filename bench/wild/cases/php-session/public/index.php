<?php
// One of the six charts of a dashboard, for a user who is logged in.
session_save_path(getenv('SESSION_PATH') ?: sys_get_temp_dir());
session_start();
$_SESSION['seen'] = ($_SESSION['seen'] ?? 0) + 1;
if (getenv('SESSION_CLOSE') === '1') {
    session_write_close();
}
usleep(40000); // the chart is rendered by another service
header('Content-Type: text/plain');
echo "chart\n";
