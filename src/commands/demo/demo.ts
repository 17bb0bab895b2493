export async function demoCommand(_o: unknown): Promise<void> {}
