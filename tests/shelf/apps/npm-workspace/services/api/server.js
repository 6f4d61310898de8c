const fs = require("node:fs");
const http = require("node:http");
const { row } = require("@tides/tables");

// As npm starts it: from the folder of the package.
const stations = JSON.parse(fs.readFileSync("stations.json", "utf8"));

http
  .createServer((request, response) => {
    const found = stations.map(row).join("");
    response.writeHead(200, { "Content-Type": "text/plain", "Content-Length": Buffer.byteLength(found) });
    response.end(found);
  })
  .listen(process.env.PORT || 3000);
