// `accord bulk`: sends a file of lines to `POST /bulk` of a server and prints the answers. The
// Idempotency-Key is a hash of the file, so the same command continues after a cut or a kill.
import { createHash } from 'node:crypto'
import { once } from 'node:events'
import { createReadStream, createWriteStream, existsSync, statSync } from 'node:fs'
import { type IncomingMessage, request as overHttp } from 'node:http'
import { request as overHttps } from 'node:https'
import { pipeline } from 'node:stream/promises'
import { setTimeout as pause } from 'node:timers/promises'
import type { Config } from '../config/config.ts'
import { linesType, splitLines } from '../contract/input/lines.ts'
import type { Schema } from '../contract/types.ts'
import { CommandError } from './command-error.ts'
import { readPassword } from './password.ts'
import { showProgress } from './progress.ts'
import { counted } from './report.ts'

interface Options {
  url?: string
  token?: string
  tokenStdin?: boolean
  onError: 'continue' | 'stop'
  dryRun?: boolean
  output?: string
  key?: string
}

type Answer = Schema<'BulkAnswer'>

interface Sending extends Options {
  path: string
  token: string
  key: string
  /** The number of lines of the file. */
  total: number
  target: NodeJS.WritableStream
  tell: (done: number, total: number) => void
}

interface Progress {
  /** The number of printed answers. */
  done: number
  refused: number
  last: Answer | undefined
}

const maxAttempts = 10
const firstPauseMs = 500

export async function bulkCommand(config: Config, path: string, options: Options): Promise<void> {
  if (!existsSync(path) || !statSync(path).isFile()) throw new CommandError(`The file ${path} does not exist.`)
  const token = options.tokenStdin ? await readPassword() : options.token
  if (token === undefined) throw new CommandError('A token is missing: give --token-stdin or --token.')
  const { total, hash } = await examine(path)
  const url = options.url ?? config.appUrl ?? `http://${config.host}:${config.port}`
  const key = options.key ?? `accord-bulk-${hash}`
  const target = options.output === undefined ? process.stdout : createWriteStream(options.output)
  const progress: Progress = { done: 0, refused: 0, last: undefined }
  await showProgress('Writing', process.stderr, (tell) =>
    sendAll({ ...options, ...{ path, token, url, key, total, target, tell } }, progress),
  )
  if (target !== process.stdout) {
    target.end()
    await once(target, 'finish')
  }
  console.error(`${counted(progress.done, 'line')} answered, ${progress.refused} refused.`)
  if (progress.refused > 0 || progress.done < total) process.exitCode = 1
}

/** Counts the lines of the file and returns a hash of it. */
async function examine(path: string): Promise<{ total: number; hash: string }> {
  const hash = createHash('sha256')
  let total = 0
  const bytes = createReadStream(path).on('data', (chunk) => hash.update(chunk))
  for await (const lines of splitLines(bytes as AsyncIterable<Buffer>)) total += lines.length
  return { total, hash: hash.digest('hex').slice(0, 40) }
}

/**
 * Sends the file until each line is answered. After a cut, the server repeats its stored answers.
 */
async function sendAll(sending: Sending, progress: Progress): Promise<void> {
  for (let attempt = 1; ; attempt++) {
    const before = progress.done
    const fault = await sendOnce(sending, progress).catch((error: NodeJS.ErrnoException) => error)
    if (fault instanceof CommandError) throw fault
    const isDone = progress.done >= sending.total || (sending.onError === 'stop' && isRefused(progress.last))
    if (isDone) return
    if (progress.done > before) attempt = 1
    if (sending.dryRun || attempt >= maxAttempts)
      throw fault ?? new CommandError(`The server answered only ${progress.done} of ${sending.total} lines.`)
    await pause(firstPauseMs * attempt)
  }
}

/** Returns whether the answer refuses its line for good. */
const isRefused = (answer: Answer | undefined): boolean => answer !== undefined && answer.status < 500 && !answer.did

async function sendOnce(sending: Sending, progress: Progress): Promise<Error | undefined> {
  const target = new URL('/api/admin/bulk', sending.url)
  target.searchParams.set('on_error', sending.onError)
  const request = (target.protocol === 'https:' ? overHttps : overHttp)(target, {
    method: 'POST',
    headers: {
      accept: 'application/json',
      authorization: `Bearer ${sending.token}`,
      'content-type': linesType,
      'idempotency-key': sending.key,
      ...(sending.dryRun && { 'accord-dry-run': 'true' }),
    },
  })
  request.on('error', () => undefined)
  const answered = once(request, 'response') as Promise<[IncomingMessage]>
  // The server may answer and close before it has read all. Its answers say how far it came.
  const sent = pipeline(createReadStream(sending.path), request).catch((error: Error) => error)
  const [response] = await answered
  response.setEncoding('utf8')
  if (response.statusCode !== 200) return refusalOf(response)
  let rest = ''
  let place = 0
  let fault: Error | undefined
  try {
    for await (const text of response as AsyncIterable<string>) {
      const lines = (rest + text).split('\n')
      rest = lines.pop() ?? ''
      for (const line of lines) {
        const answer = JSON.parse(line) as Answer
        fault = faultOf(answer)
        if (fault !== undefined || ++place <= progress.done) continue
        await take(sending, progress, line, answer)
      }
      sending.tell(progress.done, sending.total)
    }
  } catch (error) {
    fault ??= error as Error
  }
  request.destroy()
  await sent
  return fault
}

/** Returns the error of an answer with which the server ended before the line was carried out. */
function faultOf({ status, problem }: Answer): Error | undefined {
  if (status === 503) return new Error(problem?.message ?? 'The server is not available.')
  return status === 401 || problem?.code === 'idempotency_key_reused' || problem?.code === 'idempotency_in_flight'
    ? new CommandError(problem?.message ?? 'The server refuses the rest.')
    : undefined
}

async function take({ target }: Sending, progress: Progress, line: string, answer: Answer): Promise<void> {
  progress.done++
  progress.last = answer
  if (answer.problem) progress.refused++
  if (!target.write(`${line}\n`)) await once(target, 'drain')
}

/** Returns the error of a reply without answers. A temporary one can be tried again. */
async function refusalOf(response: IncomingMessage): Promise<Error> {
  let text = ''
  for await (const part of response as AsyncIterable<string>) text += part
  const status = response.statusCode ?? 0
  const sentence = messageOf(text) ?? `The server answered ${status}.`
  return [409, 429, 503].includes(status) ? new Error(sentence) : new CommandError(sentence)
}

function messageOf(text: string): string | undefined {
  try {
    return (JSON.parse(text) as { message?: string }).message
  } catch {
    return undefined
  }
}
