/** How every check speaks: nothing but its problems, one per line, and an exit status. */

/** Runs one check; each string it returns is a problem that names its place and its remedy. */
export async function runCheck(name: string, find: () => string[] | Promise<string[]>): Promise<void> {
  const problems = await find()
  for (const problem of problems) console.log(problem)
  if (problems.length > 0) {
    console.log(`${name}: ${problems.length} ${problems.length === 1 ? 'problem' : 'problems'}`)
    process.exitCode = 1
  }
}
