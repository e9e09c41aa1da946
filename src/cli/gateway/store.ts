/** The store of a gateway's file, for a second process beside the gateway. */
import { existsSync } from 'node:fs'
import type { GatewayConfig } from '../../gateway/index.ts'
import { openStore } from '../../stores/open.ts'
import type { Store } from '../../stores/store.ts'
import { CliError } from '../exit.ts'
import { brief } from '../terminal/paint.ts'

/** Undefined where there is none to look into: it is in memory, or nothing was kept yet. */
export async function storeIn({ file, frame }: Pick<GatewayConfig<unknown>, 'file' | 'frame'>): Promise<Store | undefined> {
  const { store: url = 'memory:' } = frame
  const path = /^sqlite:(?:\/\/(?=\/))?(.+)$/.exec(url)?.[1]
  if (url === 'memory:' || (path !== undefined && !existsSync(path))) return undefined
  return openStore(url).catch((error: unknown) => {
    throw new CliError(4, `The store of ${file} cannot be opened: ${brief(String(error), 200)}`, 'Correct store')
  })
}

/** The same, for what makes no sense without. */
export async function neededStore(config: Pick<GatewayConfig<unknown>, 'file' | 'frame'>): Promise<Store> {
  const store = await storeIn(config)
  if (store !== undefined) return store
  throw new CliError(
    1,
    `${config.file} keeps nothing that a second process could see: it has no store, or nothing was kept there yet`,
    'Add store: sqlite:PATH to it (the path counts from the folder of the file), and start the gateway',
  )
}
