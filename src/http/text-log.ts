// Converts JSON log lines to text for a terminal. pino-pretty is not used: it has 13 dependencies
// and would still need a custom format for the access log.
import { stripVTControlCharacters, styleText } from 'node:util'

type Style = 'bold' | 'cyan' | 'dim' | 'green' | 'red' | 'yellow'
type Paint = (style: Style, text: string) => string

const levels: Readonly<Record<number, readonly [name: string, style: Style]>> = {
  10: ['trace', 'dim'],
  20: ['debug', 'dim'],
  30: ['info', 'green'],
  40: ['warn', 'yellow'],
  50: ['error', 'red'],
  60: ['fatal', 'red'],
}

/** The fields that are hidden in every line. `ofRequest`: the fields that `requestText` formats. */
const everywhere = ['level', 'time', 'pid', 'hostname', 'msg', 'err']
const ofRequest = ['operation', 'method', 'path', 'status', 'ms', 'bytes']

/**
 * Returns a function that converts a JSON line to text. A line that is not JSON is returned
 * unchanged.
 */
export function textLog(isColored: boolean): (line: string) => string {
  const paint: Paint = (style, text) => (isColored ? styleText(style, text) : text)
  return (line) => {
    try {
      return `${readable(JSON.parse(line), paint)}\n`
    } catch {
      return line
    }
  }
}

function readable(entry: Record<string, unknown>, paint: Paint): string {
  const { level, time, err } = entry
  const [name, style] = levels[Number(level)] ?? ['log', 'dim']
  const clock = Number.isFinite(time) ? new Date(Number(time)).toTimeString().slice(0, 8) : ''
  const isRequest = typeof entry.method === 'string' && typeof entry.status === 'number'
  const said = isRequest
    ? requestText(entry, paint)
    : `${paint(style, name.padEnd(5))} ${paint('bold', plain(entry.msg))}`
  const isQuiet = isRequest && Number(entry.status) < 400
  const hidden = [...everywhere, ...(isRequest ? ofRequest : []), ...(isQuiet ? ['request_id'] : [])]
  const fields = Object.entries(entry)
    .filter(([key, value]) => !hidden.includes(key) && value !== null)
    .map(([key, value]) => `${plain(key)}=${typeof value === 'string' ? plain(value) : plain(JSON.stringify(value))}`)
  const head = [paint('dim', clock), said, paint('dim', fields.join(' '))].filter(Boolean).join(' ')
  return [head, ...errorLines(err)].join('\n')
}

function requestText({ method, path, status, ms, operation }: Record<string, unknown>, paint: Paint): string {
  const code = Number(status)
  const style = code >= 500 ? 'red' : code >= 400 ? 'yellow' : 'green'
  const name = operation === 'none' ? '' : ` ${plain(operation)}`
  return `${plain(method).padEnd(6)} ${plain(path)} ${paint(style, String(code))} ${Number(ms)} ms${paint('cyan', name)}`
}

/** Returns the lines of an error and its causes: the stack, or else the type and message. */
function errorLines(error: unknown): string[] {
  if (typeof error !== 'object' || error === null) return []
  const { type, message, stack, cause } = error as Record<string, unknown>
  const text = stack || [type, message].filter(Boolean).join(': ')
  const own = String(text)
    .split('\n')
    .map((line) => `    ${plain(line)}`)
  return [...own, ...errorLines(cause)]
}

/**
 * Removes control sequences, because a log line may quote a request and terminals would interpret
 * them.
 */
const plain = (text: unknown): string =>
  // biome-ignore lint/suspicious/noControlCharactersInRegex: these are the characters to remove.
  stripVTControlCharacters(String(text ?? '')).replaceAll(/[\u0000-\u001f\u007f-\u009f\u2028\u2029]/g, ' ')
