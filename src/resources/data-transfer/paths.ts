// Paths of an import's downloads, as the contract has them.
import { operations } from '../../contract/operations.gen.ts'

export const pathOf = (operation: 'downloadImportFile', id: number): string =>
  operations[operation].path.replace('{id}', String(id))
