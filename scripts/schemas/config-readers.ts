/** The readers of config files, for tests of the schemas: what each of them says against a file. */
import { join } from 'node:path'
import { readSettings } from '../../src/cli/host-settings.ts'
import { toMilliseconds } from '../../src/core/clock.ts'
import { readGatewayConfig } from '../../src/gateway/config/read.ts'
import { parseConfig, readParsed } from '../../src/host/config/read.ts'
import { checkLimits } from '../../src/policy/budgets/budgets.ts'
import { compile } from '../../src/policy/compile.ts'

/** What stands in the environment of the files. */
export const env = { TOKEN: 'a-token-of-the-tests', SECRET: 'a secret of at least thirty-two characters' }

export type ConfigReaders = ReturnType<typeof configReaders>

/** `folder`: where the files are thought to lie. */
export function configReaders(folder: string) {
  const hostFile = join(folder, 'mcp.json')
  const gatewayFile = join(folder, 'gateway.yaml')
  const around = { env, home: folder }
  const hostParsed = async (config: unknown) => {
    const parsed = await parseConfig(JSON.stringify(config), hostFile)
    return { parsed, faults: (await readParsed(parsed, hostFile, around)).faults }
  }
  return {
    /** The messages of a host, also of those that are found when it is opened. */
    hostFaults: async (config: unknown): Promise<readonly string[]> => {
      const { parsed, faults } = await hostParsed(config)
      const messages = faults.map(({ why }) => why.message)
      try {
        const { policy = {}, budgets = [], remember = '1h', hooks = {} } = readSettings(parsed, hostFile, env).host
        compile(policy)
        checkLimits(budgets)
        toMilliseconds(remember)
        for (const { before, after } of Object.values(hooks))
          for (const { timeout = 0 } of [before ?? {}, after ?? {}]) toMilliseconds(timeout)
      } catch (error) {
        messages.push(error instanceof Error ? error.message : String(error))
      }
      return messages
    },
    hostFixes: async (config: unknown): Promise<readonly string[]> => (await hostParsed(config)).faults.map(({ why }) => why.fix),
    /** The messages of a gateway with their fixes. */
    gatewayFaults: async (config: unknown): Promise<readonly string[]> => {
      const { faults } = await readGatewayConfig(JSON.stringify(config), gatewayFile, around)
      return faults.map(({ why }) => `${why.message}. ${why.fix}`)
    },
  }
}
