// Defines the searchable text of activities, for the parameter `q` and the search.
import { documentSource, firstWords, joinText } from '../../../db/search/documents.ts'

export const searchDocument = documentSource({
  entity: 'activities',
  rows: (db) => db.selectFrom('activities').select(['id', 'type', 'title', 'comment', 'location']),
  toDocument: (row) => ({
    id: row.id,
    title: row.title ?? firstWords(row.comment),
    subtitle: row.type,
    body: joinText(row.location, row.comment),
  }),
})
