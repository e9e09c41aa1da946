/** F */
import type { HostileSuite } from '../case.ts'
export const figures: HostileSuite = {
  title: 'figures',
  open: () => Promise.resolve({ cases: [], close: () => Promise.resolve() }),
}
