// References that a restore cannot set, because the other record is still deleted. They move to the
// archive of that record, as if it had been deleted last, and its restore sets them.
import type { Relations } from '../../../db/dialect.ts'
import type { Context } from '../context.ts'
import { type Archive, type ArchivedRow, amendArchive, type Pointer, rowNameOf } from './archive.ts'

type Amendment = (archive: Pick<Archive, 'rows' | 'pointers'>) => void

interface Spot {
  table: string
  id: number
}

export interface OwedReferences {
  /** Adds a child row that is inserted when the record at `missing` is restored. */
  addRow(missing: Spot, row: ArchivedRow): void
  /** Adds references to a deleted record. They are set when that record is restored. */
  addPointer(parent: string, pointer: Pointer): void
  /** Adds references of deleted rows. They come back with the records of the rows. */
  addValues(pointer: Pointer): void
  /** Stores the references in the archives. A record without an archive is gone for good. */
  store(ctx: Context): Promise<void>
}

export function createOwedReferences(relations: Relations): OwedReferences {
  const amendments = new Map<string, Spot & { all: Amendment[] }>()
  const add = (spot: Spot, amend: Amendment): void => {
    const name = `${spot.table} ${spot.id}`
    const known = amendments.get(name) ?? { ...spot, all: [] }
    known.all.push(amend)
    amendments.set(name, known)
  }
  return {
    addRow(missing, row) {
      const name = rowNameOf(relations, row)
      add(missing, ({ rows }) => {
        if (!rows.some((each) => rowNameOf(relations, each) === name)) rows.push(row)
      })
    },
    addPointer(parent, pointer) {
      add({ table: parent, id: pointer.to }, ({ pointers }) => void pointers.push(pointer))
    },
    addValues({ table, column, to, ids, owners }) {
      for (const [index, id] of ids.entries()) {
        const record = owners ? { table: owners.table, id: owners.ids[index] ?? 0 } : { table, id }
        add(record, ({ rows }) => {
          const found = rows.find((each) => each.table === table && each.row.id === id)
          if (found && found.row[column] === null) found.row[column] = to
        })
      }
    },
    async store(ctx) {
      const entities = new Map([...ctx.services.resources.values()].map(({ table, entity }) => [table, entity]))
      for (const { table, id, all } of amendments.values()) {
        const entity = entities.get(table as never)
        if (entity === undefined) continue
        await amendArchive(ctx, entity, id, (archive) => {
          for (const amend of all) amend(archive)
        })
      }
    },
  }
}
