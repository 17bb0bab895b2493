// Builds the text by which the parameter `q` and the search find a product.
import { joinText, readRange, type SearchDocumentSource } from '../../../db/search/documents.ts'

export const searchDocument: SearchDocumentSource = {
  entity: 'products',
  async read(db, range) {
    const products = () => db.selectFrom('products').select(['id', 'sku', 'name', 'description'])
    return (await readRange(db, 'products', range, products)).map((row) => ({
      id: row.id,
      title: row.name,
      subtitle: row.sku,
      body: joinText(row.sku, row.description),
    }))
  },
}
