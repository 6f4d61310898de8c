// Checks an address with a partner.
const http = require("node:http");
const partner = require("./partner");

const server = http.createServer(async (request, response) => {
  if (request.url === "/health") {
    response.end("ok");
    return;
  }
  try {
    const answer = await partner.check("Domplein 1, Utrecht");
    response.setHeader("Content-Type", "application/json");
    response.end(JSON.stringify(answer));
  } catch (error) {
    response.statusCode = 502;
    response.end(error.message);
  }
});

server.listen(process.env.PORT || 3000, "127.0.0.1");
