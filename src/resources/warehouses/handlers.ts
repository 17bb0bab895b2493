// What can be done with warehouses through the API. Their products are listed by the products' slice.
import type { HandlersFor } from '../../kernel/handler.ts'
import { createTagHandlers } from '../tags/tag-handlers.ts'
import { warehouses } from './resource.ts'

const tags = createTagHandlers('warehouses', warehouses)

export const handlers: HandlersFor<
  | 'listWarehouses'
  | 'getWarehouse'
  | 'createWarehouse'
  | 'updateWarehouse'
  | 'deleteWarehouse'
  | 'listWarehouseTags'
  | 'attachWarehouseTag'
  | 'detachWarehouseTag'
> = {
  ...warehouses.handlers,
  listWarehouseTags: tags.list,
  attachWarehouseTag: tags.attach,
  detachWarehouseTag: tags.detach,
}
