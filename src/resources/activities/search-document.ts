// Defines the searchable text of activities, for the parameter `q` and the search.
import { firstWords, joinText, readRange, type SearchDocumentSource } from '../../../db/search/documents.ts'

export const searchDocument: SearchDocumentSource = {
  entity: 'activities',
  async read(db, range) {
    const activities = () => db.selectFrom('activities').select(['id', 'type', 'title', 'comment', 'location'])
    return (await readRange(db, 'activities', range, activities)).map((row) => ({
      id: row.id,
      title: row.title ?? firstWords(row.comment),
      subtitle: row.type,
      body: joinText(row.location, row.comment),
    }))
  },
}
