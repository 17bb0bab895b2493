// @ts-check
// Writes code samples for an operation in curl, TypeScript and Python. A sample runs unchanged: it
// needs no packages, and reads the token from the environment variable ACCORD_TOKEN.

/** @typedef {Record<string, any>} Json */

/**
 * @typedef {object} Request The request that a sample sends.
 * @property {string} method
 * @property {string} url
 * @property {boolean} isPublic
 * @property {any} json The body, or undefined.
 * @property {Record<string, string> | null} form The text fields of a form.
 * @property {boolean} isMultipart
 * @property {string | null} fileField The form field for a file.
 * @property {string} accept
 */

const fileName = 'example.txt'

/** Returns a value that the schema accepts. @param {Json} parameter @returns {string} */
function valueFor({ name, schema = {} }) {
  const values = schema.enum ?? schema.items?.enum
  if (values) return String(values[0])
  if (schema.type === 'integer' || schema.type === 'number') return String(Math.max(schema.minimum ?? 1, 1))
  if (schema.type === 'boolean') return 'true'
  if (schema.type === 'array') return valueFor({ name, schema: schema.items ?? {} })
  if (schema.format === 'date' || schema.format === 'date-time' || /_at|_date/.test(name)) return '2026-01-01'
  return name === 'q' ? 'acme' : name
}

/**
 * Returns the query of a sample: required parameters, the first range filter and `sort`.
 * @param {Json[]} parameters
 */
function queryOf(parameters) {
  const inQuery = parameters.filter((each) => each.in === 'query')
  const range = inQuery.find(({ name }) => name.endsWith('[gte]'))
  const sort = inQuery.find(({ name }) => name === 'sort')
  const shown = inQuery.filter((each) => each.required || each === range || each === sort)
  const pairs = shown.map((each) => `${each.name}=${encodeURIComponent(valueFor(each)).replace(/%2C/g, ',')}`)
  return pairs.length > 0 ? `?${pairs.join('&')}` : ''
}

/** @param {Json} media @param {boolean} isMultipart */
function formOf({ example, schema = {} }, isMultipart) {
  const properties = schema.properties ?? {}
  const fileField = isMultipart ? Object.keys(properties).find((key) => isFile(properties[key])) : undefined
  const fields = Object.entries(example ?? {}).filter(([key, value]) => key !== fileField && typeof value !== 'object')
  return { fileField: fileField ?? null, form: Object.fromEntries(fields.map(([key, value]) => [key, String(value)])) }
}

/** @param {Json} schema @returns {boolean} */
const isFile = ({ format, items, contentMediaType }) =>
  format === 'binary' || contentMediaType !== undefined || (items !== undefined && isFile(items))

/** @param {Json} operation @param {string} path @param {string} method @param {string} origin @returns {Request} */
export function requestOf(operation, path, method, origin) {
  const parameters = operation.parameters ?? []
  const filled = path.replace(/\{(\w+)\}/g, (_place, name) => {
    const parameter = parameters.find((/** @type {Json} */ each) => each.in === 'path' && each.name === name)
    return encodeURIComponent(valueFor(parameter ?? { name }))
  })
  const content = operation.requestBody?.content ?? {}
  const [type = ''] = Object.keys(content)
  const isMultipart = type === 'multipart/form-data'
  const isJson = type.endsWith('json')
  const { form, fileField } = type && !isJson ? formOf(content[type], isMultipart) : { form: null, fileField: null }
  const success = Object.entries(operation.responses ?? {}).find(([status]) => status.startsWith('2'))
  const [accept = 'application/json'] = Object.keys(success?.[1].content ?? {})
  return {
    method: method.toUpperCase(),
    url: `${origin}${filled}${queryOf(parameters)}`,
    isPublic: operation.security?.length === 0,
    json: isJson ? content[type].example : undefined,
    form,
    isMultipart,
    fileField,
    accept: accept === '*/*' ? 'application/json' : accept,
  }
}

/** @param {string} text */
const quoted = (text) => `'${text.replaceAll("'", `'\\''`)}'`

/** @param {Request} request @returns {string[][]} */
function headersOf({ accept, isPublic, json }) {
  return [
    ['Accept', accept],
    ...(isPublic ? [] : [['Authorization', 'Bearer $ACCORD_TOKEN']]),
    ...(json === undefined ? [] : [['Content-Type', 'application/json']]),
  ]
}

/** @param {Request} request */
export function curlOf(request) {
  const { method, url, json, form, fileField, isMultipart } = request
  const hasBody = json !== undefined || form !== null
  const isImplied = method === (hasBody ? 'POST' : 'GET')
  const lines = [
    `curl -g ${isImplied ? '' : `-X ${method} `}${quoted(url)}`,
    // Double quotes let the shell expand the variable.
    ...headersOf(request).map(([name = '', value = '']) =>
      value.includes('$') ? `-H "${name}: ${value}"` : `-H '${name}: ${value}'`,
    ),
    ...(json === undefined ? [] : [`-d ${quoted(JSON.stringify(json, null, 2))}`]),
    ...Object.entries(form ?? {}).map(([key, value]) =>
      isMultipart ? `-F ${quoted(`${key}=${value}`)}` : `--data-urlencode ${quoted(`${key}=${value}`)}`,
    ),
    ...(fileField ? [`-F '${fileField}=@${fileName}'`] : []),
  ]
  const file = fileField ? `echo 'Hello' > ${fileName}\n` : ''
  return file + lines.join(' \\\n  ')
}

/** Indents all lines except the first. @param {string} text @param {string} indent */
const indented = (text, indent) => text.replaceAll('\n', `\n${indent}`)

/** @param {Request} request */
export function typescriptOf(request) {
  const { method, url, json, form, fileField, isMultipart } = request
  const headers = headersOf(request).map(([name = '', value = '']) => {
    // biome-ignore lint/suspicious/noTemplateCurlyInString: the sample has the template.
    const text = value.includes('$') ? '`Bearer ${process.env.ACCORD_TOKEN}`' : `'${value}'`
    return `    ${name.includes('-') ? `'${name}'` : name}: ${text},`
  })
  const fields = Object.entries(form ?? {}).map(([key, value]) => `form.append(${quotedJs(key)}, ${quotedJs(value)})`)
  const lines = [
    ...(form ? [`const form = new ${isMultipart ? 'FormData' : 'URLSearchParams'}()`, ...fields] : []),
    ...(fileField ? [`form.append('${fileField}', new Blob(['Hello']), '${fileName}')`] : []),
    `const response = await fetch(${quotedJs(url)}, {`,
    ...(method === 'GET' ? [] : [`  method: '${method}',`]),
    '  headers: {',
    ...headers,
    '  },',
    ...(json === undefined ? [] : [`  body: JSON.stringify(${indented(literalJs(json), '  ')}),`]),
    ...(form ? ['  body: form,'] : []),
    '})',
    'console.log(response.status, await response.text())',
  ]
  return lines.join('\n')
}

/** @param {string} text */
const quotedJs = (text) => `'${text.replaceAll('\\', '\\\\').replaceAll("'", "\\'").replaceAll('\n', '\\n')}'`

/** Returns the value as TypeScript: JSON without the quotes of simple keys. @param {any} value */
const literalJs = (value) => JSON.stringify(value, null, 2).replace(/^(\s*)"(\w+)":/gm, '$1$2:')

/** @param {any} value @param {string} indent @returns {string} A Python literal. */
export function literalPython(value, indent = '') {
  if (value === null) return 'None'
  if (typeof value === 'boolean') return value ? 'True' : 'False'
  if (typeof value !== 'object') return JSON.stringify(value)
  const inner = `${indent}    `
  const isArray = Array.isArray(value)
  const items = isArray
    ? value.map((each) => `${inner}${literalPython(each, inner)},`)
    : Object.entries(value).map(([key, each]) => `${inner}${JSON.stringify(key)}: ${literalPython(each, inner)},`)
  const [open, close] = isArray ? '[]' : '{}'
  return items.length === 0 ? `${open}${close}` : `${open}\n${items.join('\n')}\n${indent}${close}`
}

/** Returns the lines that build a multipart body. @param {Request} request @returns {string[]} */
function multipartPython({ form, fileField }) {
  const parts = Object.entries(form ?? {}).map(
    ([key, value]) =>
      `    ${JSON.stringify(`--accord\r\nContent-Disposition: form-data; name="${key}"\r\n\r\n${value}\r\n`)}`,
  )
  const file = fileField
    ? [
        `    ${JSON.stringify(`--accord\r\nContent-Disposition: form-data; name="${fileField}"; filename="${fileName}"\r\nContent-Type: text/plain\r\n\r\nHello\r\n`)}`,
      ]
    : []
  return ['body = (', ...parts, ...file, '    "--accord--\\r\\n"', ')']
}

/** @param {Request} request */
export function pythonOf(request) {
  const { method, url, json, form, isMultipart, isPublic } = request
  const headers = headersOf(request).map(([name = '', value = '']) =>
    value.includes('$')
      ? `        "${name}": f"Bearer {os.environ['ACCORD_TOKEN']}",`
      : `        "${name}": ${JSON.stringify(value)},`,
  )
  if (isMultipart) headers.push('        "Content-Type": "multipart/form-data; boundary=accord",')
  const data = isMultipart
    ? 'body.encode()'
    : form
      ? `urllib.parse.urlencode(${literalPython(form, '    ')}).encode()`
      : json === undefined
        ? null
        : `json.dumps(${literalPython(json, '    ')}).encode()`
  const imports = [...(json === undefined ? [] : ['json']), ...(isPublic ? [] : ['os'])]
  if (form && !isMultipart) imports.push('urllib.parse')
  const lines = [
    ...imports.map((name) => `import ${name}`),
    'import urllib.request',
    '',
    ...(isMultipart ? multipartPython(request) : []),
    'request = urllib.request.Request(',
    `    ${JSON.stringify(url)},`,
    `    method="${method}",`,
    '    headers={',
    ...headers,
    '    },',
    ...(data ? [`    data=${data},`] : []),
    ')',
    'with urllib.request.urlopen(request) as response:',
    '    print(response.status, response.read().decode())',
  ]
  return lines.join('\n')
}

export const languages = [
  { name: 'curl', write: curlOf },
  { name: 'TypeScript', write: typescriptOf },
  { name: 'Python', write: pythonOf },
]
