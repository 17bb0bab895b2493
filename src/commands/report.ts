// Prints the result of a command: sentences for a person, or one line of JSON for a program.
// Progress messages are printed on standard error, and only at a terminal.

export interface ReportOptions {
  json?: boolean
}

export function report({ json = false }: ReportOptions, result: object, sentences: readonly string[]): void {
  if (json) console.log(JSON.stringify(result))
  else for (const sentence of sentences) console.log(sentence)
}

/** Prints the current phase of a long command, only at a terminal. */
export function tellPhase(sentence: string): void {
  if (process.stderr.isTTY) console.error(sentence)
}

/** Returns the number with its noun: `1 job`, `2 jobs`. */
export const counted = (number: number, singular: string, plural = `${singular}s`): string =>
  `${number} ${number === 1 ? singular : plural}`
