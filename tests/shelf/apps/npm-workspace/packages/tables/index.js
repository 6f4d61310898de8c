exports.row = (name, number) => `${number + 1} ${name}\n`;
