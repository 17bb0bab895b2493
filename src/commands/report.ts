// Prints the result of a command: sentences for a person, or one line of JSON for a program. What a
// command is doing goes to standard error, and only to a terminal.

export interface ReportOptions {
  json?: boolean
}

export function report({ json = false }: ReportOptions, result: object, sentences: readonly string[]): void {
  if (json) console.log(JSON.stringify(result))
  else for (const sentence of sentences) console.log(sentence)
}

/** Says at a terminal what a long command is doing now. */
export function tellPhase(sentence: string): void {
  if (process.stderr.isTTY) console.error(sentence)
}

/** Returns the number with its noun: `1 job`, `2 jobs`. */
export const counted = (number: number, singular: string, plural = `${singular}s`): string =>
  `${number} ${number === 1 ? singular : plural}`
