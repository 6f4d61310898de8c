<?php
// A shop that counts its visits in a file.
file_put_contents(__DIR__ . '/../visits.log', "visit\n", FILE_APPEND | LOCK_EX);
?>
<p><?= htmlspecialchars('soup') ?></p>
