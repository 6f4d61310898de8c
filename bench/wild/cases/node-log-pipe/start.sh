# The log goes to the shipper, which hands it on line by line.
node server.js | perl ship.pl
