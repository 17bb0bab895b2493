// Bodies that cost much to read for their size. None of them is a valid request.
const mebibyte = 1024 * 1024

/** A body with its media type. */
export interface DearBody {
  name: string
  type: string
  body: string
}

const json = (name: string, body: string): DearBody => ({ name, type: 'application/json', body })
const form = (name: string, body: string): DearBody => ({
  ...{ name, body },
  type: 'application/x-www-form-urlencoded',
})
/** Repeats a piece up to this length. */
const filled = (piece: string, length: number): string => piece.repeat(Math.floor(length / piece.length))
const numbered = (count: number, piece: (index: number) => string, separator = ','): string =>
  Array.from({ length: count }, (_, index) => piece(index)).join(separator)

/** Returns bodies of at most `length` bytes. */
export function dearBodies(length = mebibyte - 64): DearBody[] {
  const count = (bytes: number): number => Math.floor(length / bytes)
  return [
    json('tiny lists', `{"a":[${filled('[],', length - 10)}[]]}`),
    json('tiny objects', `{"a":[${filled('{},', length - 10)}{}]}`),
    json('zeros', `{"a":[${filled('0,', length - 10)}0]}`),
    json('nulls', `{"a":[${filled('null,', length - 10)}null]}`),
    json('booleans', `{"a":[${filled('true,', length - 10)}true]}`),
    json('empty texts', `{"a":[${filled('"",', length - 10)}""]}`),
    json('exponents', `{"a":[${filled('1e1,', length - 10)}1]}`),
    json('numbers of 16 digits', `{"a":[${filled('1234567890123456,', length - 10)}1]}`),
    json('one number of many digits', `{"a":${filled('7', length - 10)}}`),
    json('one fraction of many digits', `{"a":0.${filled('3', length - 10)}}`),
    json('negative zeros', `{"a":[${filled('-0,', length - 10)}0]}`),
    json('keys', `{${numbered(count(11), (at) => `"${at}":0`)}}`),
    json('keys of a known prefix', `{${numbered(count(18), (at) => `"title${at}":0`)}}`),
    json('one key repeated', `{${filled('"a":1,', length - 10)}"a":1}`),
    json('the prototype', `{${filled('"__proto__":{},', length - 10)}"a":1}`),
    json('custom attributes', `{"custom_attributes":{${numbered(count(11), (at) => `"${at}":0`)}}}`),
    json('deep lists', `{"a":${filled('[', length / 2)}${filled(']', length / 2)}}`),
    json('deep objects', `${filled('{"a":', length - 10)}1`),
    json('lists 30 deep', `{"a":[${filled(`${'['.repeat(28)}${']'.repeat(28)},`, length - 10)}0]}`),
    json('wide rows of objects', `{"a":[${filled('{"b":{"c":{}}},', length - 10)}0]}`),
    json('escapes', `{"a":"${filled('\\u0041', length - 10)}"}`),
    json('escaped quotes', `{"a":"${filled('\\"', length - 10)}"}`),
    json('backslashes', `{"a":"${filled('\\\\', length - 10)}"}`),
    json('half surrogates', `{"a":"${filled('\\ud800', length - 10)}"}`),
    json('combining marks', `{"title":"${filled('e\u0301', (length - 20) / 1.5)}"}`),
    json('spaces', `{"title":"${filled(' ', length - 20)}"}`),
    json('white space', `{"a":1${filled('\n', length - 10)}}`),
    json('an unclosed text', `{"a":"${filled('x', length - 10)}`),
    json('an unclosed list', `{"a":[${filled('1,', length - 10)}`),
    json(
      'an e-mail address',
      `{"email":"${filled('a.', length / 2 - 20)}@${filled('a-', length / 2 - 20)}","password":"x"}`,
    ),
    json('a password', `{"email":"admin@example.com","password":"${filled('p', length - 60)}","device_name":"x"}`),
    form('fields', filled('a=&', length)),
    form('empty fields', filled('&', length)),
    form('nested names', filled('a[b][c][d]=1&', length)),
    form('deep names', `a${filled('[b]', length - 10)}=1`),
    form('list entries', filled('a[]=1&', length)),
    form('percent signs', `a=${filled('%41', length - 10)}`),
    form('broken percent signs', `a=${filled('%', length - 10)}`),
    form('plus signs', `a=${filled('+', length - 10)}`),
  ]
}
