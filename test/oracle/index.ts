/** The oracle of this process, where the official schemas are at hand; undefined where they are not. */
import { createOracle, type Oracle } from './hook.ts'
import { schemaFolder } from './schemas.ts'

const folder = schemaFolder()

export const oracle: Oracle | undefined = folder === undefined ? undefined : createOracle(folder)
