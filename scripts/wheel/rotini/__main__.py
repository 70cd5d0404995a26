from rotini import main

main()
