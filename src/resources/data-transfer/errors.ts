// The errors of an import: those of its rows, which users see, and the one that the code throws.
// The kind of a thrown error says how far it reaches.

export interface RowError {
  row: number
  column: string | null
  code: string
  message: string
}

/** A row with its errors. `cells` is empty for an error of the whole file. */
export interface ReportedRow {
  cells: readonly string[]
  errors: readonly RowError[]
  /** Whether the row was imported without the cells that have the errors. */
  isImported: boolean
}

/** The error code of an invalid cell that was omitted from an imported row. */
export const omittedCode = 'cell_omitted'

type Stopped =
  /** A cell cannot be parsed. */
  | { kind: 'cell' }
  /** A row cannot be imported. It has all errors of the row. */
  | { kind: 'row'; errors: readonly RowError[] }
  /** A file cannot be read. Rows count from 1, and an error of the whole file also has row 1. */
  | { kind: 'file'; row: number }
  /** An import cannot continue. `failing` has the rows with errors when there are too many. */
  | { kind: 'import'; failing?: readonly ReportedRow[] }
  /** Another process works on the import or has changed it. */
  | { kind: 'process' }

type Kind = Stopped['kind']

/** Users see the message, except that of a row. */
export class ImportStop<Of extends Kind> extends Error {
  readonly stopped: Extract<Stopped, { kind: Of }>

  constructor(message: string, stopped: Extract<Stopped, { kind: Of }>, cause?: unknown) {
    super(message, cause === undefined ? undefined : { cause })
    this.stopped = stopped
  }
}

/** Returns whether the error is one of these kinds. */
export const stops = <Of extends Kind>(error: unknown, ...kinds: Of[]): error is ImportStop<Of> =>
  error instanceof ImportStop && kinds.includes((error as ImportStop<Of>).stopped.kind as Of)

export const unreadable = (sentence: string, row = 1, cause?: unknown): ImportStop<'file'> =>
  new ImportStop(sentence, { kind: 'file', row }, cause)

export const refusedRow = (errors: readonly RowError[]): ImportStop<'row'> =>
  new ImportStop('row refused', { kind: 'row', errors })

export const takenOver = (message: string): ImportStop<'process'> => new ImportStop(message, { kind: 'process' })
