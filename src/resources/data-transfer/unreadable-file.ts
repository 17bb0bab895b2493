// The error for a file that cannot be imported at all.
export class UnreadableFile extends Error {
  /** The row of the error, counted from 1. An error of the whole file also has row 1. */
  readonly row: number

  constructor(sentence: string, cause?: unknown, row = 1) {
    super(sentence, cause === undefined ? undefined : { cause })
    this.name = 'UnreadableFile'
    this.row = row
  }
}
