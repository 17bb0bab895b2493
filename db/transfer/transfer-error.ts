// The error class that all files in this folder throw.

/** A reason why a database cannot be copied, as a sentence for the user. */
export class TransferError extends Error {
  constructor(message: string, cause?: unknown) {
    super(message, cause === undefined ? undefined : { cause })
    this.name = 'TransferError'
  }
}
