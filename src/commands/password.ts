// Reads a password for a command: hidden at a terminal, or from the first line of standard input.
import { createInterface } from 'node:readline'
import { Writable } from 'node:stream'
import { CommandError } from './command-error.ts'

/** Prompts for a password twice at the terminal. Throws CommandError when the two inputs differ. */
export async function askPassword(): Promise<string> {
  const first = await promptHidden('New password: ')
  if ((await promptHidden('Repeat it: ')) !== first)
    throw new CommandError('The passwords differ; nothing was changed.')
  return first
}

/**
 * Returns the first line of standard input. Throws CommandError when the line is empty or missing.
 */
export async function readPassword(): Promise<string> {
  const line = await readLine(createInterface({ input: process.stdin }))
  if (line === null || line === '') throw new CommandError('Standard input contains no password; nothing was changed.')
  return line
}

async function promptHidden(question: string): Promise<string> {
  process.stderr.write(question)
  const nowhere = new Writable({ write: (_chunk, _encoding, done) => done() })
  const line = await readLine(createInterface({ input: process.stdin, output: nowhere, terminal: true }))
  process.stderr.write('\n')
  if (line === null) throw new CommandError('No password was typed; nothing was changed.')
  return line
}

/**
 * Returns the next line. Returns null when the input ends first, at a terminal by Ctrl+C or Ctrl+D.
 */
const readLine = (lines: ReturnType<typeof createInterface>): Promise<string | null> =>
  new Promise((resolve) => {
    lines.once('line', (line) => {
      resolve(line)
      lines.close()
    })
    lines.once('close', () => resolve(null))
  })
