// Builds the text by which the parameter `q` and the search find a product.
import { documentSource, joinText } from '../../../db/search/documents.ts'

export const searchDocument = documentSource({
  entity: 'products',
  rows: (db) => db.selectFrom('products').select(['id', 'sku', 'name', 'description']),
  toDocument: (row) => ({
    id: row.id,
    title: row.name,
    subtitle: row.sku,
    body: joinText(row.sku, row.description),
  }),
})
