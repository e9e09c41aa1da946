/** Where there are no files. */
import { needsNode } from '../../core/required-node.web.ts'
import type { TokenStorage } from './storage.ts'

export function openFileStorage(): TokenStorage {
  throw needsNode('fileStorage', 'Use memoryStorage(), or give oauth a storage of your own: { get, set, delete }')
}
