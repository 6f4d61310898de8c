<?php
header('Content-Type: text/plain');
echo "from a pool\n";
