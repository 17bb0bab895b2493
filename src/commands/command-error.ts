// Reports the failure of a command as one sentence on standard error. The stack is printed only
// with ACCORD_LOG_LEVEL=debug or trace.

import { CommanderError } from 'commander'
import { storageFaultOf } from '../../db/storage-errors.ts'
import { isDebugging } from '../config/config.ts'
import { Problem } from '../contract/output/problems.ts'
import { maxDescriptors, minDescriptors } from '../http/descriptor-limit.ts'

/** An error that the user can fix. The message says how to fix the error. */
export class CommandError extends Error {
  constructor(message: string, cause?: unknown) {
    super(message, cause === undefined ? undefined : { cause })
    this.name = 'CommandError'
  }
}

/** The exit code for a command line that cannot be understood. */
const usageExitCode = 2

/**
 * Returns whether the command line asks for JSON. A command line that cannot be understood has no
 * options yet, so the words are searched.
 */
export const wantsJson = (words: readonly string[] = process.argv): boolean => words.includes('--json')

/** Prints a failure as a sentence or, with --json, as a line of JSON, and sets the exit code. */
export function reportFailure(error: unknown, isJson = wantsJson()): void {
  if (error instanceof CommanderError) {
    // commander has already printed its message, or the requested help or version. With --json it
    // prints no message (program.ts).
    process.exitCode = error.exitCode === 0 ? 0 : usageExitCode
    if (isJson && error.exitCode !== 0)
      console.error(JSON.stringify({ error: error.message.replace(/^error: /, '').replaceAll('\n', ' ') }))
    return
  }
  console.error(isJson ? JSON.stringify(failureOf(error)) : sentenceOf(error))
  if (isDebugging()) console.error(error)
  process.exitCode = 1
}

/** Returns the failure for a program. `code` and `errors` are those of the API. */
const failureOf = (error: unknown) => ({
  error: sentenceOf(error),
  ...(error instanceof Problem && {
    code: error.code,
    ...(error.more.errors && { errors: error.more.errors }),
  }),
})

function sentenceOf(error: unknown): string {
  if ((error as NodeJS.ErrnoException | null)?.code === 'EMFILE')
    return `This process may open only ${maxDescriptors() ?? 'few'} files, and a server needs ${minDescriptors}. Allow more, for example with ulimit -n 1024 or LimitNOFILE=.`
  if (storageFaultOf(error) === 'busy')
    return 'Another program has locked the database. End that program or wait for it, then try again.'
  if (error instanceof Problem && error.more.errors) {
    return Object.entries(error.more.errors)
      .map(([field, sentences]) => `${field}: ${sentences.join(' ')}`)
      .join('\n')
  }
  const message = error instanceof Error ? error.message : String(error)
  const isOurs =
    error instanceof CommandError ||
    error instanceof Problem ||
    (error instanceof Error &&
      ['ConfigError', 'UnknownMigrationError', 'MissingProgramError', 'UnbuiltError'].includes(error.name))
  return isOurs ? message : `${message.replace(/([^.!?])$/, '$1.')} (ACCORD_LOG_LEVEL=debug shows more.)`
}
