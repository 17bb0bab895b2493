// Why a file as a whole cannot be imported.
export class Unreadable extends Error {
  /** The row that tells, as a person counts them; the first for the file as a whole. */
  readonly row: number

  constructor(sentence: string, cause?: unknown, row = 1) {
    super(sentence, cause === undefined ? undefined : { cause })
    this.name = 'Unreadable'
    this.row = row
  }
}
