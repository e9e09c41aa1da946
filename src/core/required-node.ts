/**
 * Imported by every entry: an old Node is told so in words, before something that it lacks fails somewhere inside. The check runs when
 * the module is loaded, so it stands first among the imports of an entry. It needs nothing that an old Node lacks.
 */

/** As `engines` in package.json has it. */
const needed = [22, 18] as const

/** What is wrong with the runtime; undefined where nothing is. Bun and Deno have version numbers of their own. */
export function faultOfNode({ node, bun, deno }: Readonly<Record<string, string | undefined>>): string | undefined {
  if (node === undefined || bun !== undefined || deno !== undefined) return undefined
  const [major = 0, minor = 0] = node.split('.').map(Number)
  if (major > needed[0] || (major === needed[0] && minor >= needed[1])) return undefined
  return `Vivarium needs Node ${needed.join('.')} or newer; this is ${node}. Install a newer version, or start the program with: npx -y -p node@24 node …`
}

const fault = faultOfNode(globalThis.process?.versions ?? {})
if (fault !== undefined) {
  const error = new Error(fault)
  // Where it was noticed helps nobody.
  error.stack = `Error: ${fault}`
  throw error
}
