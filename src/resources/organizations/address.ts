// Postal addresses, for slices that show one; how one is stored is in kernel/address.ts.
export { addressParts, mergeAddress, readAddress, requireAddress } from '../../kernel/address.ts'
