export type { BackendAccess, ContractCase, StoreContractOptions } from "./contract-case.ts";
export { ManualClock } from "./manual-clock.ts";
export { storeContract } from "./store-contract.ts";
