// Filters a list of names by a pattern that a user typed.
const http = require('http');

const typed = process.env.SAFE_PATTERN === '1' ? /^\w+(\s\w+)*$/ : /^(\w+\s?)+$/;
const names = ['kitchen light', 'sensor.living_room_x!', 'bedroom heating', 'front_door', 'garage_door_sensor!'];

http.createServer((req, res) => {
  const found = names.filter((name) => typed.test(name));
  res.setHeader('Content-Type', 'application/json');
  res.end(JSON.stringify({ found }));
}).listen(process.env.PORT || 3000, '127.0.0.1');
