"use strict";
/* What is drawn with; and the cells, whose meaning is in board.py. All the scripts are one in the page. */
const SVG = "http://www.w3.org/2000/svg";
const cells = new Map();

const byId = (id) => document.getElementById(id);
const clock = () => performance.now() / 1000;
const whole = (number) => Math.round(number).toLocaleString("en");
const seconds = (number) => `${number.toFixed(1)} s`;
const under = (prefix) => [...cells.keys()].filter((key) => key.startsWith(prefix))
  .map((key) => [Number(key.slice(prefix.length)), cells.get(key)]).sort((a, b) => a[0] - b[0]);

function make(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  element.append(...children);
  return element;
}
function draw(tag, attributes = {}, ...children) {
  const element = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  element.append(...children);
  return element;
}
function say(id, text) {
  const element = byId(id);
  if (element.textContent !== text) element.textContent = text;
}
function bytes(number) {
  if (number < 1e3) return `${whole(number)} B`;
  if (number < 1e6) return `${(number / 1e3).toFixed(1)} kB`;
  return number < 1e9 ? `${(number / 1e6).toFixed(1)} MB` : `${(number / 1e9).toFixed(2)} GB`;
}
